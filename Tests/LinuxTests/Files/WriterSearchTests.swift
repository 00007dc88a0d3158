import Core
import Glibc
import Linux
import TestKit
import Testing

@Suite("Searching for writers")
struct WriterSearchTests {
    let folder = TemporaryFolder()
    let search = WriterSearch(clocks: SystemClocks())

    init() { Lease.ignoreSignal() }

    @Test("the answer is certain for a file of the own user, open or not")
    func own() throws {
        let path = try folder.write("a", noise(10))
        #expect(try answer(search, path) == .absent)
        let writer = try Descriptor.open(path, for: .updating)
        #expect(try answer(search, path) == .present)
        try writer.close(named: path)
        #expect(try answer(search, path) == .absent)
    }

    @Test(
        "a file on FUSE may be open elsewhere even if a lease is granted; a local writer is detected",
        .enabled("\(RemoteFolder.need)") { await RemoteFolder.isPossible.value })
    func fuse() async throws {
        let remote = try RemoteFolder()
        try await remote.mount()
        let there = remote.there.appending("a")
        let file = try Descriptor.open(there, for: .creating)
        try file.write(noise(10), named: there)
        try file.close(named: there)
        let path = remote.path.appending("a")
        #expect(try answer(search, path) == .unknown(.elsewhere))
        let writer = try Descriptor.open(path, for: .updating)
        #expect(try answer(search, path) == .present)
        try writer.close(named: path)
    }

    @Test("started programs have none of the service's additional capabilities")
    func rights() throws {
        let program = Program(
            words: [Array("/bin/cat".utf8), Array("/proc/self/status".utf8)],
            environment: Program.plainEnvironment, folder: "/")
        let said = String(decoding: try program.collectOutput(atMost: 64 << 10, within: .seconds(20)), as: UTF8.self)
        func set(_ name: String) throws -> UInt64 {
            let line = try #require(said.split(separator: "\n").first { $0.hasPrefix(name + ":") })
            return try #require(UInt64(line.split(separator: "\t").last ?? "", radix: 16))
        }
        #expect(try set("CapAmb") == 0)
        #expect(try set("CapInh") == 0)
        if geteuid() != 0 {
            #expect(try set("CapPrm") == 0)
            #expect(try set("CapEff") == 0)
        }
        // Root may remove it from the set that its programs can ever have.
        let lease: UInt64 = 1 << Machine.Capability.lease.rawValue
        if Machine.has(.lease) == true, geteuid() == 0 { #expect(try set("CapBnd") & lease == 0) }
    }
}

private func answer(_ search: WriterSearch, _ path: FilePath) throws -> WriterSearch.Answer {
    try search.findWriter(path.name, in: OpenFolder(following: path.parent)).answer
}
