import Testing

@testable import Core

@Suite("Refusals of a key")
struct KeyRefusalTests {
    @Test("the first says nothing while another upload can be tried, and is the key's where none can")
    func first() {
        var refusals = KeyRefusals()
        #expect(refusals.refuse("a", othersWait: true) == .unknown)
        #expect(refusals.onlySuspect == "a" && !refusals.isOwn("a"))
        refusals = KeyRefusals()
        #expect(refusals.refuse("a", othersWait: false) == .key)
    }

    @Test("two files with nothing accepted in between are refused for the key, and so is every next one")
    func two() {
        var refusals = KeyRefusals()
        _ = refusals.refuse("a", othersWait: true)
        #expect(refusals.refuse("b", othersWait: true) == .key)
        // Another upload may soon show that the key is valid after all.
        #expect(refusals.isDoubtful && refusals.onlySuspect == nil)
        for id in ["c", "a", "d"] { #expect(refusals.refuse(id, othersWait: true) == .key) }
        #expect(!refusals.isDoubtful)
        refusals.accept()
        #expect(!refusals.isDoubtful)
    }

    @Test("a refusal is the file's own where another one was accepted after it, and only there")
    func own() {
        var refusals = KeyRefusals()
        refusals.accept()
        // An upload that was accepted before it proves nothing.
        #expect(refusals.refuse("a", othersWait: true) == .unknown)
        refusals.accept()
        #expect(refusals.isOwn("a") && refusals.onlySuspect == nil)
        #expect(refusals.refuse("a", othersWait: true) == .file(times: 2))
        refusals.accept()
        #expect(refusals.refuse("a", othersWait: true) == .file(times: 3))
        // None was accepted since, so the key may be the cause this time.
        #expect(refusals.refuse("a", othersWait: true) == .unknown)
        #expect(refusals.isOwn("a"))
        #expect(refusals.refuse("b", othersWait: true) == .key)
    }

    @Test("one that is over, or has another key, begins anew")
    func forgotten() {
        var refusals = KeyRefusals()
        _ = refusals.refuse("a", othersWait: true)
        refusals.forget("a")
        #expect(refusals.refuse("b", othersWait: true) == .unknown)
    }
}
