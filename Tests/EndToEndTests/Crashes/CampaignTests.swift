import Core
import FoundationEssentials
import Linux
import TestKit
import TestTraits
import Testing

/// Servers that refuse, forget and give false answers at the end of an upload, and a daemon that is killed meanwhile.
/// The result of each upload is compared with the answers that the daemon got, and with the content of the destination.
@Suite(
    "Random campaign against servers with faults", .needsPackages, .serialized,
    .timeLimit(.minutes(Patience.minutes(60))))
struct CampaignTests {
    private static let isWanted = ConditionTrait.enabled(if: Setting.isThorough, "takes minutes: make campaign")

    @Test("without faults and kills every file is there once and complete", isWanted, arguments: CampaignKind.here)
    func control(_ kind: CampaignKind) async throws {
        var campaign = try await Campaign(kind, seed: 1, isFaulty: false)
        try campaign.drop()
        try await campaign.settle()
        let result = try await campaign.result()
        #expect(result.problems == [])
        #expect(result.completed == 3 && result.failed == 0 && result.doubted == 0, "\(result)")
        if kind != .directory { #expect(try campaign.scene.relay?.lines().contains(where: \.isEnd) == true) }
    }

    @Test(
        "no file is lost, duplicated without a warning, or released against the configuration", isWanted,
        arguments: CampaignKind.here)
    func faults(_ kind: CampaignKind) async throws {
        let seed = Setting.seed
        do {
            var campaign = try await Campaign(kind, seed: seed, isFaulty: true)
            for _ in 0..<max(2, Setting.kills / CampaignKind.here.count) {
                try campaign.drop()
                try await campaign.kill()
            }
            try await campaign.settle()
            let result = try await campaign.result()
            print("campaign \(result), seed \(seed)")
            for other in result.others { print("campaign \(kind.rawValue), failed: \(other)") }
            if !result.problems.isEmpty {
                throw Outcome.Failed(problems: result.problems, lastWords: campaign.scene.fixture.lastWords())
            }
        } catch {
            Issue.record(error, "seed \(seed); run again with SLUICE_SEED=\(seed) SLUICE_KILLS=\(Setting.kills)")
        }
    }
}

/// One run, and the conditions at its end.
private struct Campaign {
    let scene: CampaignScene
    private var dice: Dice
    /// Milliseconds since 1970.
    private var kills: [Int64] = []

    struct Result: CustomStringConvertible {
        var kind: CampaignKind
        var kills, files: Int
        var completed = 0, refused = 0, failed = 0, doubted = 0, twice = 0
        /// Failures without a refusal at the end: code and words, with the faults of the requests.
        var others: [String] = []
        var problems: [String] = []
        var description: String {
            "\(kind.rawValue): \(kills) kills, \(files) files, \(completed) completed, \(refused) refused, "
                + "\(failed - refused) failed otherwise, \(doubted) doubted, "
                + "\(twice) twice, \(problems.count) problems"
        }
    }

    init(_ kind: CampaignKind, seed: UInt64, isFaulty: Bool) async throws {
        scene = try await CampaignScene(kind, seed: seed, isFaulty: isFaulty)
        dice = Dice(seed: seed)
        try scene.fixture.startDaemon()
    }

    mutating func drop() throws {
        for _ in 0..<3 {
            let number = scene.camera.clips.count
            let size = Int.random(in: scene.sizes(), using: &dice)
            try scene.camera.drop(Clip(number: number, size: size, relative: FilePath("clip \(number).mp4")))
        }
    }

    mutating func kill() async throws {
        // The time is random on purpose, so that the kill meets files in any state.
        try await Task.sleep(for: .milliseconds(Int.random(in: 50...1200, using: &dice)))
        scene.fixture.killDaemon()
        kills.append(now)
        try scene.fixture.startDaemon()
    }

    private var now: Int64 { SystemClocks().wall().milliseconds }

    /// Waits until every upload has ended, and every source that is to be released is gone.
    func settle() async throws {
        let (fixture, count) = (scene.fixture, scene.camera.clips.count)
        do {
            try await eventually("\(count) uploads have ended", within: .seconds(120), every: .milliseconds(200)) {
                try fixture.daemon?.requireRunning()
                guard let status = try await fixture.status(), !status.starting, status.counts.ongoing == 0,
                    status.counts.completed + status.counts.failed >= count
                else { return false }
                return try Outcome.files(in: fixture.drop, hidden: true).count == status.counts.failed
            }
        } catch let overdue as Overdue {
            let open = try await uploads().filter {
                $0.state != "failed" && $0.sourceState != "done"
            }
            throw Outcome.Failed(
                problems: ["\(overdue)"] + open.map { "\($0)" } + (try relayed(of: open)),
                lastWords: fixture.lastWords())
        }
    }

    private func uploads() async throws -> [CampaignList.Upload] {
        let text = try await eventually("the daemon lists its uploads", within: .seconds(20), every: .milliseconds(100))
        {
            try await scene.fixture.runVerb("list", ["--json", "--limit", "1000"])
        }
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let list = try decoder.decode(CampaignList.self, from: Data(text.utf8))
        guard list.next == nil else { throw Outcome.Failed(problems: ["more than a thousand uploads"], lastWords: "") }
        return list.uploads
    }

    private func relayed(of uploads: [CampaignList.Upload]) throws -> [String] {
        let names = Set(uploads.map(\.name))
        return try (scene.relay?.lines() ?? []).filter { names.contains($0.name ?? "") }.map { "\($0)" }
    }

    func result() async throws -> Result {
        let (fixture, clips) = (scene.fixture, scene.camera.clips)
        var result = Result(kind: scene.kind, kills: kills.count, files: clips.count)
        let byName = Dictionary(grouping: try await uploads(), by: \.name)
        let held = Dictionary(grouping: try await scene.held(), by: { $0 }).mapValues(\.count)
        let sources = Set(try Outcome.files(in: fixture.drop, hidden: true))
        let lines = try scene.relay?.lines() ?? []
        // By name, and by content where the relay did not get one.
        let ends = Dictionary(grouping: lines.filter(\.isEnd)) { $0.name ?? scene.content($0.upload) ?? $0.upload }
        for clip in clips {
            let (name, digest) = (clip.relative.display, CampaignScene.digest(clip.content))
            let uploads = byName[name] ?? []
            let copies = held[digest] ?? 0
            let isHere = sources.contains(clip.relative)
            let end = (ends[name] ?? ends[digest])?.last
            let doubted = uploads.contains(where: \.tellsOfDoubt)
            var wrong: [String] = []
            if copies == 0 && !isHere { wrong.append("lost") }
            if copies > 1 {
                result.twice += 1
                if !doubted { wrong.append("\(copies) times there, and no warning of it") }
            }
            if scene.kind.onlyCounts, let end, let told = end.told, isRefusal(told, end.fault),
                !wasUnseen(end, uploads)
            {
                if !isHere { wrong.append("released, though its end was answered with \(told)") }
                if !uploads.contains(where: { $0.error?.code == "refused_at_end" && $0.error?.http == told }) {
                    wrong.append("its end was answered with \(told), which is not what it has ended with")
                }
            }
            for upload in uploads where upload.state == "failed" {
                result.failed += 1
                if upload.error?.code == "refused_at_end" {
                    result.refused += 1
                } else {
                    let faults = (ends[name] ?? ends[digest] ?? []).map { "\($0.fault ?? "-") \($0.told ?? 0)" }
                    result.others.append("\(upload.error.map { "\($0)" } ?? "no error") \(faults)")
                }
                if upload.error?.code == "refused_at_end", upload.error?.http == nil { wrong.append("no status") }
                if !isHere { wrong.append("failed, and its source is gone") }
            }
            if uploads.isEmpty { wrong.append("not listed") }
            result.completed += uploads.count { $0.state == "completed" }
            if doubted { result.doubted += 1 }
            if !wrong.isEmpty {
                let about = uploads.map { "\($0)" } + (ends[name] ?? ends[digest] ?? []).map { "\($0)" }
                result.problems.append("\(name), \(clip.size) bytes: \(wrong.joined(separator: "; ")); \(about)")
            }
        }
        return result
    }

    /// Whether the program may have got an answer without seeing it: it was killed about then, and reports that it saw
    /// no answer, or has asked the service whether it can use the file.
    private func wasUnseen(_ end: ScriptedRelay.Line, _ uploads: [CampaignList.Upload]) -> Bool {
        let isNear = kills.contains { (-200...1000).contains($0 - end.at) }
        let ways =
            scene.kind == .form
            ? ["blocks_unanswered", "acknowledgement"] : scene.kind == .vimeo ? ["transcoded"] : ["offset_unanswered"]
        return isNear && uploads.contains { ways.contains($0.remote?.verifiedBy ?? "") }
    }

    /// A server's own answer may concern the position of the upload, and not the file.
    private func isRefusal(_ status: Int, _ fault: String?) -> Bool {
        guard (400...599).contains(status), ![401, 403, 407, 408, 425, 429, 502, 503, 504].contains(status) else {
            return false
        }
        return fault != nil || ![404, 409, 410, 423].contains(status)
    }
}
