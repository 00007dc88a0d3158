import Core
import Linux
import Synchronization
import TestKit
import Testing

@testable import Destinations

/// When an upload whose source is to go counts as verified.
@Suite("vimeo, verified before a source goes", .timeLimit(.minutes(Patience.minutes(3))))
struct VimeoVerifyTests {
    @Test(
        "where the source goes, a video that can be watched is waited for; where it stays, or somebody wants it so, it is not",
        arguments: VimeoFlow.allCases)
    func byAction(_ flow: VimeoFlow) async throws {
        for (removes, verify, waits) in [
            (true, nil, true), (false, nil, false), (true, "transfer", false), (false, "playable", true),
        ] as [(Bool, String?, Bool)] {
            let end = try VimeoEnd(flow, verify.map { ["verify": .text($0)] } ?? [:])
            end.server.change { $0.behaviour.states = ["transcoding", "available"] }
            let parcel = try Parcel(1500, removesSource: removes)
            let logbook = Logbook()
            if waits {
                let error = try await parcel.failure(to: end, logbook)
                guard case .pending = error.remedy else { throw error }
            }
            let object = try await parcel.send(to: end, logbook)
            #expect(object.verifiedBy == (waits ? "playable" : "offset"))
        }
    }

    @Test("a look whether it is ready is one GET", arguments: VimeoFlow.allCases)
    func polls(_ flow: VimeoFlow) async throws {
        let end = try VimeoEnd(flow)
        end.server.change { $0.behaviour.states = ["transcoding"] }
        let parcel = try Parcel(1500, removesSource: true)
        let logbook = Logbook()
        _ = try await parcel.failure(to: end, logbook)
        end.server.change { $0.requests = [] }
        for _ in 0..<3 { _ = try await parcel.failure(to: end, logbook) }
        #expect(end.server.requests == ["video", "video", "video"])
    }

    @Test("after `verify_timeout` that is said, and it is asked on, more seldom; at last it is complete with a warning")
    func timeout() async throws {
        let end = try VimeoEnd(.tus, ["verify_timeout": .duration(.seconds(7200))])
        end.server.change { $0.behaviour.states = ["transcoding"] }
        let parcel = try Parcel(1500, removesSource: true)
        let logbook = Logbook()
        #expect(try await parcel.failure(to: end, logbook).failure.code == "remote_works")
        end.server.change { $0.behaviour.ahead = 7_100_000 }
        #expect(try await parcel.failure(to: end, logbook).failure.code == "remote_works")
        end.server.change { $0.behaviour.ahead = 30 * 86_400_000 }
        for _ in 0..<20 {
            let late = try await parcel.failure(to: end, logbook)
            #expect(late.failure.code == Asking.verifyTimeout)
            #expect(late.failure.message.contains("the source and the copy stay"), "\(late)")
            guard case .pending(let wait) = late.remedy else { throw late }
            #expect(wait == .seconds(3600))
        }
        end.server.change { $0.behaviour.states = ["available"] }
        let object = try await parcel.send(to: end, logbook)
        #expect(object.verifiedBy == "playable" && object.warnings.count == 1, "\(object.warnings)")
        #expect(end.server.state.withLock { $0.received } == 1500)
    }

    @Test("a failed transcode fails with the service's words, and its video goes")
    func failed() async throws {
        let end = try VimeoEnd()
        end.server.change { $0.behaviour.states = ["transcoding", "transcoding_error"] }
        let parcel = try Parcel(1500, removesSource: true)
        let logbook = Logbook()
        _ = try await parcel.failure(to: end, logbook)
        let error = try await parcel.failure(to: end, logbook)
        #expect(error.remedy == .giveUp && error.failure.code == "transcoding_failed")
        #expect(error.failure.message.contains("transcoding_error"), "\(error)")
    }

    @Test("a ticket's video that nobody can name releases no source, and one that stays is complete with a warning")
    func unnamed() async throws {
        for removes in [true, false] {
            let end = try VimeoEnd(.fourStep)
            end.server.script(.complete, .loseReply)
            end.server.change { $0.behaviour.showsAfter = 1_000_000 }
            let parcel = try Parcel(1500, removesSource: removes)
            let logbook = Logbook()
            if removes {
                let error = try await parcel.failure(to: end, logbook)
                guard case .pending = error.remedy else { throw error }
                end.server.change { $0.behaviour.ahead = 2_000_000 }
                #expect(try await parcel.send(to: end, logbook).verifiedBy == "playable")
            } else {
                #expect(try await end.bring(parcel, logbook).warnings.count == 1)
            }
        }
    }
}
