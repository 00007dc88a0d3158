internal import Core

/// Work that is done for every file name, event and upload.
let coreBenchmarks: [Benchmark] = [
    Benchmark(name: "core/display", unit: "names", perIteration: names.count) {
        for name in names where name.display.isEmpty { throw WrongResult("a name that shows as nothing") }
    },
    Benchmark(name: "core/relative", unit: "names", perIteration: names.count) {
        let folder: FilePath = "/srv/camera/front"
        for name in names where folder.appending(name).relative(to: folder) != name {
            throw WrongResult("another name came back: \(name)")
        }
    },
    Benchmark(name: "core/upload-id", unit: "ids", perIteration: 1000) {
        var id = UploadID(time: WallTime(milliseconds: 1_795_161_600_000), chance: 1)
        let first = id
        for _ in 0..<1000 { id = id.next(chance: 0) }
        guard id > first, id.milliseconds <= first.milliseconds + 1 else { throw WrongResult("ids out of order") }
    },
    Benchmark(name: "core/upload-id-read", unit: "ids", perIteration: 1000) {
        for _ in 0..<1000 where UploadID("01jd4w6rg0abcdefghjkmnpqrs") == nil { throw WrongResult("a good id refused") }
    },
    Benchmark(name: "core/template-read", unit: "templates", perIteration: 100) {
        for _ in 0..<100 {
            guard try Template("/srv/done/{year}/{month}/{name}").pieces.count == 6 else {
                throw WrongResult("pieces went missing")
            }
        }
    },
    Benchmark(name: "core/template-fill", unit: "names", perIteration: names.count) {
        let template = try Template("/srv/done/{year}/{month}/{name}")
        for name in names {
            let filled = template.filled { word, _ in word == "name" ? name.bytes : Array("2026".utf8) }
            guard filled.count == "/srv/done/2026/2026/".utf8.count + name.bytes.count else {
                throw WrongResult("a filled template of the wrong length")
            }
        }
    },
]

/// Most are plain; one in ten is unusual, as from a phone or a broken file system.
private let names: [FilePath] = (0..<1000).map { number in
    number % 10 == 0
        ? FilePath(bytes: Array("Aufnahme Tür \(number)\n".utf8) + [0xFF])
        : FilePath("2026-11-20/front-door_20261120T0800\(number).mp4")
}
