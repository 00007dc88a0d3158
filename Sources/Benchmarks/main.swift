internal import Core

// `make bench` runs this. Arguments pick benchmarks by a part of their name: `make bench ONLY=core/`.
let wanted = CommandLine.arguments.dropFirst()
if wanted.first == "fill" {
    guard let backlog = Backlog(wanted.dropFirst()) else {
        throw WrongResult("usage: Benchmarks fill STATE COUNT [WATCHED STAGING]")
    }
    try await backlog.fill(FilePath(wanted[wanted.startIndex + 1])) { count in
        if count % 100_000 == 0 { print("filled\t\(count)") }
    }
} else if wanted.first == "claims", wanted.count == 2 {
    let times = try await claimTimes(FilePath(wanted[wanted.startIndex + 1]))
    print("claim\t\(times.claim)\tsmallest change\t\(times.smallest)")
} else {
    for benchmark in coreBenchmarks where wanted.isEmpty || wanted.contains(where: { benchmark.name.contains($0) }) {
        print(try await benchmark.measured())
    }
}
