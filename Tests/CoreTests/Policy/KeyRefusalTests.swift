import Testing

@testable import Core

@Suite("Refusals of a key")
struct KeyRefusalTests {
    @Test("the first refusal proves nothing while another upload can be tried, and blames the key if none can")
    func first() {
        var refusals = KeyRefusals()
        #expect(refusals.refuse("a", othersWait: true) == .unknown)
        #expect(refusals.onlySuspect == "a" && !refusals.isOwn("a"))
        refusals = KeyRefusals()
        #expect(refusals.refuse("a", othersWait: false) == .key)
    }

    @Test("two refused files without an accepted one in between blame the key, and so does every next one")
    func two() {
        var refusals = KeyRefusals()
        _ = refusals.refuse("a", othersWait: true)
        #expect(refusals.refuse("b", othersWait: true) == .key)
        // Another upload may soon prove that the key is valid.
        #expect(refusals.isDoubtful && refusals.onlySuspect == nil)
        for id in ["c", "a", "d"] { #expect(refusals.refuse(id, othersWait: true) == .key) }
        #expect(!refusals.isDoubtful)
        refusals.accept()
        #expect(!refusals.isDoubtful)
    }

    @Test("a refusal blames the file if another was accepted after it, and only then")
    func own() {
        var refusals = KeyRefusals()
        refusals.accept()
        // An upload that was accepted before the refusal proves nothing.
        #expect(refusals.refuse("a", othersWait: true) == .unknown)
        refusals.accept()
        #expect(refusals.isOwn("a") && refusals.onlySuspect == nil)
        #expect(refusals.refuse("a", othersWait: true) == .file(times: 2))
        refusals.accept()
        #expect(refusals.refuse("a", othersWait: true) == .file(times: 3))
        // No upload was accepted since then, so the key may be the cause this time.
        #expect(refusals.refuse("a", othersWait: true) == .unknown)
        #expect(refusals.isOwn("a"))
        #expect(refusals.refuse("b", othersWait: true) == .key)
    }

    @Test("a file that was refused for its own sake waits alone, also where no other upload can try the key")
    func ownAlone() {
        var refusals = KeyRefusals()
        _ = refusals.refuse("a", othersWait: true)
        refusals.accept()
        for times in 2...4 { #expect(refusals.refuse("a", othersWait: false) == .file(times: times)) }
        // A second file that is refused blames the key.
        #expect(refusals.refuse("b", othersWait: false) == .key)
        #expect(refusals.uploads == ["a", "b"])
    }

    @Test("many files that were each refused for their own sake leave the key doubtful, and one more new one too")
    func manyOwn() {
        var refusals = KeyRefusals()
        for id in ["a", "b", "c", "d"] {
            _ = refusals.refuse(id, othersWait: true)
            refusals.accept()
            #expect(refusals.refuse(id, othersWait: true) == .file(times: 2))
            refusals.accept()
        }
        for id in ["a", "b", "c", "d", "new", "newer"] { _ = refusals.refuse(id, othersWait: true) }
        #expect(refusals.isDoubtful)
        _ = refusals.refuse("newest", othersWait: true)
        #expect(!refusals.isDoubtful)
    }

    @Test("an upload that has ended, or with another key, starts again")
    func forgotten() {
        var refusals = KeyRefusals()
        _ = refusals.refuse("a", othersWait: true)
        refusals.forget("a")
        #expect(refusals.refuse("b", othersWait: true) == .unknown)
    }
}
