internal import Core
internal import Glibc
internal import Linux
internal import TestKit

// `make bench` runs this. Arguments select by a part of a name: `make bench ONLY=core/`. ROUNDS=5 is the number of
// measurements on each side.
let words = Array(CommandLine.arguments.dropFirst())
if words.first == "put", words.count == 3 {
    try await put(FilePath(words[1]), to: words[2])
    exit(0)
}
if words.first == "fill" {
    guard let backlog = Backlog(words[1...]) else {
        throw WrongResult("usage: Benchmarks fill STATE COUNT [WATCHED [STAGING]]")
    }
    try await backlog.fill(FilePath(words[1])) { count in
        if count % 100_000 == 0 { print("filled\t\(count)") }
    }
    exit(0)
}
if words.first == "claims", words.count == 2 {
    let times = try await claimTimes(FilePath(words[1]))
    print("claim\t\(times.claim)\tsmallest change\t\(times.smallest)")
    exit(0)
}
// For manual tests: the servers of the tests, until the process is ended.
if words.first == "serve", words.count == 2 {
    func serve(_ url: String, _ key: String) -> Never {
        // Written directly: a reader would not see a line that waits in the buffer.
        let line = "listening on \(url), \(key)\n"
        _ = line.withCString { write(1, $0, line.utf8.count) }
        while true { pause() }
    }
    switch words[1] {
    case "vimeo":
        let server = try VimeoServer()
        withExtendedLifetime(server) { serve(server.url, "token vimeo-token-1, allow_origins: [\(server.bytesURL)]") }
    case "ceph":
        let gateway = try await Ceph.gateway.value
        serve(gateway.url, "access key \(S3Server.id), secret key \(S3Server.secretKey)")
    default: throw WrongResult("usage: Benchmarks serve vimeo|ceph")
    }
}
func isWanted(_ name: String) -> Bool { words.isEmpty || words.contains { name.contains($0) } }

for benchmark in coreBenchmarks where isWanted(benchmark.name) { print(try await benchmark.measured()) }

let marks =
    (transferMarks + parallelPartMarks + rangeMarks + partMarks + bucketMarks + bandwidthMarks + smallFileMarks
    + daemonMarks + backlogMarks + pageMarks + watchMarks)
    .filter {
        isWanted($0.name)
    }
var missed = 0
var broken = 0
if !marks.isEmpty {
    let bench = try Bench(rounds: getenv("ROUNDS").flatMap { Int(String(cString: $0)) } ?? 5)
    for mark in marks {
        print("\n\(mark.name): \(mark.what)")
        do {
            for finding in try await mark.measure(bench) {
                print("  \(finding)")
                if finding.verdict == .missed { missed += 1 }
            }
        } catch let absent as Absent { print("  \(absent)") } catch {
            // A failed measurement has no figure; the others are still made.
            print("  not measured: \(error)")
            broken += 1
        }
        fflush(nil)
    }
    print("\n\(missed) marks missed, \(broken) not measured")
    if broken > 0 { exit(1) }
}
