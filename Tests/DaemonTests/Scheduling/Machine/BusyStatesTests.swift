import API
import Core
import Linux
import Synchronization
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("BusyStates: the sources of `busy`")
struct BusyStatesTests {
    private let command = BusySource.command(["/bin/ask"])
    private let file = BusySource.file("/run/recording")
    private let wall = WallTime(milliseconds: 1_795_161_600_000)

    private func at(_ seconds: Int64) -> MonotonicTime { MonotonicTime(nanoseconds: seconds * 1_000_000_000) }

    private func states(_ sources: BusySource...) -> BusyStates {
        var states = BusyStates()
        states.add(sources.map { PolicyRules(busy: BusyRule($0)) })
        return states
    }

    @Test("a command runs only while an upload waits for it, every 30 s, and never twice at once")
    func rhythm() {
        var states = states(command)
        #expect(states.due([], at: at(0)).isEmpty)
        #expect(states.nextCheck(at: at(0)) == nil)
        #expect(states.due([command], at: at(1)) == [command: .seconds(10)])
        #expect(states.isQuerying)
        // The command hangs.
        #expect(states.due([command], at: at(40)).isEmpty)
        #expect(states.nextCheck(at: at(40)) == nil)
        _ = states.record(.busy, of: command, asked: at(1), at: wall)
        #expect(states.answers(at: at(5))[command]?.answer == .busy)
        #expect(states.due([command], at: at(5)).isEmpty)
        #expect(states.nextCheck(at: at(5)) == .seconds(26))
        #expect(states.due([command], at: at(31)) == [command: .seconds(10)])
        // The last answer counts until the next one arrives.
        #expect(states.answers(at: at(35))[command]?.answer == .busy)
        _ = states.record(.free, of: command, asked: at(31), at: wall)
        #expect(states.due([], at: at(40)).isEmpty)
        #expect(states.nextCheck(at: at(40)) == nil)
    }

    @Test("the result of a command does not count later, when an upload waits again")
    func old() {
        var states = states(command)
        _ = states.due([command], at: at(0))
        _ = states.record(.free, of: command, asked: at(0), at: wall)
        _ = states.due([], at: at(10))
        #expect(states.answers(at: at(29))[command]?.isFree == true)
        #expect(states.answers(at: at(30))[command] == nil)
        #expect(states.due([command], at: at(45)) == [command: .seconds(10)])
        // The earlier answer no longer counts.
        #expect(states.answers(at: at(45))[command] == nil)
        let later = wall.advanced(by: .seconds(45))
        let (change, _) = states.record(.free, of: command, asked: at(45), at: later)
        #expect(change == .none)
        #expect(states.answers(at: at(46))[command] == BusyAnswer(.free, since: later))
    }

    @Test("a file with change events is checked once and then after each event, without a schedule")
    func files() {
        var states = states(file)
        #expect(!states.hasPolled)
        #expect(states.answers(at: at(0)).isEmpty)
        #expect(states.due([], at: at(0)).keys.contains(file))
        // Something happens during the inspection: the file is inspected again.
        #expect(states.filesChanged(unwatched: [:]).ask.isEmpty)
        #expect(states.record(.free, of: file, asked: at(0), at: wall).again != nil)
        #expect(
            states.record(.busy, of: file, asked: at(0), at: wall) == (
                .another(before: BusyAnswer(.free, since: wall)), nil
            )
        )
        #expect(states.due([file], at: at(100_000)).isEmpty)
        #expect(states.nextCheck(at: at(100_000)) == nil)
        #expect(states.answers(at: at(100_000))[file]?.answer == .busy)
        #expect(states.filesChanged(unwatched: [:]).ask.keys.contains(file))
    }

    @Test("a file without change events is checked like a command, and this is logged once")
    func silent() {
        var states = states(file)
        _ = states.due([], at: at(0))
        _ = states.record(.free, of: file, asked: at(0), at: wall)
        #expect(
            states.filesChanged(unwatched: ["/run/recording": "no watches"]).failures == [
                "/run/recording": "no watches"
            ])
        _ = states.record(.free, of: file, asked: at(1), at: wall)
        #expect(states.filesChanged(unwatched: ["/run/recording": "no watches"]).failures.isEmpty)
        _ = states.record(.free, of: file, asked: at(1), at: wall)
        #expect(states.hasPolled)
        #expect(states.due([], at: at(60)).isEmpty)
        #expect(states.answers(at: at(60))[file] == nil)
        #expect(states.due([file], at: at(60)).keys.contains(file))
        _ = states.record(.free, of: file, asked: at(60), at: wall)
        #expect(states.nextCheck(at: at(70)) == .seconds(20))
    }

    @Test("a file that could not be checked is checked again, even without an event")
    func unreadable() {
        var states = states(file)
        _ = states.due([], at: at(0))
        _ = states.record(.unknown(problem: "is hidden", remedy: "show it"), of: file, asked: at(0), at: wall)
        #expect(states.due([file], at: at(5)).isEmpty)
        #expect(states.nextCheck(at: at(5)) == .seconds(25))
        #expect(states.due([file], at: at(30)).keys.contains(file))
        _ = states.record(.free, of: file, asked: at(30), at: wall)
        #expect(states.nextCheck(at: at(31)) == nil)
        #expect(states.answers(at: at(1_000))[file]?.isFree == true)
    }

    @Test(
        "if two places use the same command, the shorter times count; an unused source is dropped")
    func rules() {
        var states = BusyStates()
        states.add([
            PolicyRules(busy: BusyRule(command, every: .seconds(60), timeout: .seconds(2))),
            PolicyRules(busy: BusyRule(command, every: .seconds(5), timeout: .seconds(9))),
        ])
        #expect(states.due([command], at: at(0)) == [command: .seconds(2)])
        states.keep([])
        // A running query is not started again.
        #expect(states.isQuerying)
        _ = states.record(.busy, of: command, asked: at(0), at: wall)
        #expect(states.nextCheck(at: at(0)) == .seconds(5))
        states.keep([])
        #expect(states.answers(at: at(1)).isEmpty)
        #expect(states.nextCheck(at: at(0)) == nil)
    }
}
