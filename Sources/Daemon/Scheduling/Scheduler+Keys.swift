internal import Config
internal import Core
internal import Credentials
internal import Linux
internal import Store

// Uploads that a destination refuses with 401 or 403: whether it refuses the file or the key.

extension House {
    /// The cause of a refusal may be a secret that a person corrects, so the next try reads it again. Some destinations
    /// report a wrong key with 200, 400 or 404.
    func refused(_ remedy: Remedy?, by destination: String) {
        switch remedy {
        case .authenticate, .misconfigured, .refused, .giveUp: secrets.renew(of: destination)
        case .holdDestination, .noRoom, .rateLimit, .again, .pending, .restage, nil: break
        }
    }
}

extension Scheduler {
    /// Whether a refusal of a key leaves its destination alone; in that case only the upload waits.
    func isForItself(_ verdict: inout UploadAttempt.Verdict, _ upload: UploadRecord) async -> Bool {
        guard case .authenticate? = verdict.remedy, let failure = verdict.failure,
            failure.http == 401 || failure.http == 403
        else { return false }
        let name = upload.destination
        let othersWait = await othersWait(at: name)
        let cause = keyRefusals[name, default: KeyRefusals()].refuse(upload.id, othersWait: othersWait)
        let text: String
        let times: Int
        switch cause {
        case .key: return false
        case .unknown: (text, times) = ("refused; the next upload shows whether its key or the file is at fault", 1)
        case .file(let count): (text, times) = ("waits alone, since others are taken with the same key", count)
        }
        let retry = house.retry(folder: upload.folder, destination: name)
        let wait = retry.wait(afterFailures: times, jitter: Random.jitter())
        verdict.outcome = .held(failure, until: house.clocks.monotonic().advanced(by: wait))
        house.log.warning(
            text,
            [
                "id": upload.id, "destination": name, "reason": failure.message,
                "next_try_in": "\(Int(wait.inSeconds.rounded(.up)))s",
            ])
        return true
    }

    /// Whether an upload that was not refused for its own sake could be sent there now or within `time`: neither a
    /// pause nor policy holds its folder.
    private func othersWait(at name: String, within time: Duration = .zero) async -> Bool {
        let ready: [UploadClass]
        let own = keyRefusals[name]?.own ?? []
        do { ready = try await house.store.readyClasses(within: time, besides: own) } catch {
            house.log.debug("what waits is not known", ["destination": name, "reason": "\(error)"])
            return false
        }
        let (admission, inputs, remote) = (admission, inputs, remote(name))
        return ready.contains { one in
            one.destination == name && admission.hardBlockers(on: remote, from: origin(one.folder), in: inputs).isEmpty
        }
    }

    /// Gives back uploads that were refused for their own sake while another upload can try the key.
    func passOverRefused(_ claims: [Claim], at name: String) async throws -> [Claim] {
        guard health[name]?.trouble?.kind == .auth, let refusals = keyRefusals[name],
            claims.contains(where: { refusals.isOwn($0.upload.id) }),
            // Uploads that were refused with the key wait until one second after the next try.
            await othersWait(at: name, within: .seconds(2))
        else { return claims }
        try await giveBack(claims.filter { refusals.isOwn($0.upload.id) }) { claim in
            guard let failure = try await house.store.failures(claim.upload.id).last?.failure else { return .yielded }
            let retry = house.retry(folder: claim.upload.folder, destination: name)
            let wait = retry.wait(afterFailures: 1, jitter: Random.jitter())
            return .held(failure, until: house.clocks.monotonic().advanced(by: wait))
        }
        house.schedulingSignal.signal()
        return claims.filter { !refusals.isOwn($0.upload.id) }
    }

    /// When to try a refused key with an upload that was not refused; `nil` where there is none, or where enough
    /// uploads were refused.
    func timeToTryKey(of name: String, _ remedy: Remedy) async -> Duration? {
        guard case .authenticate = remedy, keyRefusals[name]?.isDoubtful == true, await othersWait(at: name) else {
            return nil
        }
        return Self.beforeTryingKey
    }

    private static let beforeTryingKey = Duration.seconds(10)

    /// Where only one or two files were refused, an upload that arrived since shows soon whether the key is at fault.
    func tryKeysWithOthers() async throws {
        let now = (wall: house.clocks.wall(), monotonic: house.clocks.monotonic())
        for (name, health) in health where health.trouble?.kind == .auth {
            guard let refusals = keyRefusals[name], refusals.isDoubtful, !health.mayProbe(at: now.monotonic),
                await othersWait(at: name)
            else { continue }
            let wait = refusals.onlySuspect == nil ? Self.beforeTryingKey : .zero
            self.health[name]?.probe(within: wait, now: now.wall, monotonic: now.monotonic)
        }
    }
}
