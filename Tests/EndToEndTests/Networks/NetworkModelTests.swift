import Core
import Linux
import TestKit
import Testing

/// Links and routes change, rules change and the daemon is killed while files are uploaded. The kernel's packet filter
/// counts the bytes sent over each link.
@Suite(
    "Random changes of two links and a tunnel", .enabled(if: TwoRoads.isPossible, "\(TwoRoads.need)"),
    .timeLimit(.minutes(Patience.minutes(15))))
struct NetworkModelTests {
    @Test(
        "no byte uses a forbidden link, the ledger covers all sent bytes and hardly more, and every file arrives once"
    )
    func scenes() async throws {
        let (seed, count, tunnels) = (Setting.seed, Setting.scenes, try await blocking { TwoRoads.tunnels })
        // With more of them, too few cores are left for each, and a daemon needs more than a second to notice a change.
        let workers = 3
        let all = await withTaskGroup(of: [NetworkScenario.Figures].self) { group in
            for worker in 0..<workers {
                group.addTask {
                    var figures: [NetworkScenario.Figures] = []
                    for number in stride(from: worker, to: count, by: workers) {
                        let script = NetworkScript(seed: seed &+ UInt64(number), tunnels: tunnels)
                        if let one = await Self.play(script) { figures.append(one) }
                    }
                    return figures
                }
            }
            return await group.reduce(into: []) { $0 += $1 }
        }
        #expect(all.count == count)
        Self.tell(all)
    }

    @Test("no script gives two links default routes of one metric, which the kernel would refuse or merge")
    func metrics() {
        for seed in UInt64(1)...4000 {
            var owners = ["10": "wan0", "100": "lte0"]
            for case .links(_, let commands) in NetworkScript(seed: seed, tunnels: [.vxlan]).phases.joined() {
                for words in commands.map({ $0.split(separator: " ").map(String.init) }) {
                    if words.first == "link", words.last == "down" { owners = owners.filter { $0.value != words[2] } }
                    guard words.first == "route", let link = words.firstIndex(of: "dev"), let metric = words.last
                    else { continue }
                    let owner = owners.updateValue(words[link + 1], forKey: metric)
                    #expect(owner == nil || owner == words[link + 1] && words[1] != "add", "seed \(seed): \(commands)")
                    if words[1] == "del" { owners[metric] = nil }
                }
            }
        }
    }

    /// A failure is recorded with everything that is needed to repeat the scene alone.
    private static func play(_ script: NetworkScript) async -> NetworkScenario.Figures? {
        var problems: [String] = []
        var figures: NetworkScenario.Figures?
        do {
            let play = try await NetworkScenario(script)
            do { try await play.play() } catch { problems.append("\(error)") }
            problems = play.problems + problems
            figures = play.figures
            print("scene \(play.figures)")
        } catch { problems.append("\(error)") }
        if !problems.isEmpty {
            Issue.record(
                """
                \(problems.joined(separator: "\n"))
                \(script)
                run it again with SLUICE_SEED=\(script.seed) SLUICE_SCENES=1
                """)
        }
        return figures
    }

    private static func tell(_ all: [NetworkScenario.Figures]) {
        func sum(_ count: (NetworkScenario.Figures) -> Int) -> Int { all.map(count).reduce(0, +) }
        print(
            "scenes \(all.count): files \(sum { $0.files }), flips \(sum { $0.flips }), kills \(sum { $0.kills }),",
            "with a tunnel \(all.count { $0.hasTunnel }), silent stretches \(sum { $0.silences }),",
            "bytes on forbidden links \(sum { Int($0.forbiddenBytes) }), comparisons \(sum { $0.comparisons }),",
            "put around packets by tunnels \(sum { Int($0.added) }),",
            "seconds a scene \(sum { Int($0.time.components.seconds) } / max(1, all.count))")
        for (what, some) in [
            ("without kills", all.filter { $0.kills == 0 }), ("with kills", all.filter { $0.kills > 0 }),
        ] where !some.isEmpty {
            let excess = some.map(\.excess)
            print(
                "scenes \(what) \(some.count): wire \(some.map(\.wire).reduce(0, +)), ledger above it",
                "\(excess.reduce(0, +)), worst \(excess.max() ?? 0), mean \(excess.reduce(0, +) / Int64(some.count)),",
                "least at any moment \(some.map(\.least).min() ?? 0),",
                "connections \(some.map(\.connections).reduce(0, +))")
        }
    }
}
