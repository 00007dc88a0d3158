internal import Config
internal import Core
internal import Linux

// The wall clock and the time zone, and whether the clock is trusted.

extension Scheduler {
    func lookAtClock() {
        // The clock is not checked where no rule depends on it.
        if house.settings.allRules.allSatisfy(\.isTimeless) {
            clockTrouble = nil
            return
        }
        lookAtZone()
        let now = house.clocks.together()
        let trouble = trust.evaluate(
            wall: now.wall, monotonic: now.monotonic, isSynchronised: house.clocks.isSynchronised)
        if let trouble, clockTrouble?.text != trouble.text {
            house.log.warning("what depends on the time waits", ["reason": trouble.text])
        } else if trouble == nil, clockTrouble != nil {
            house.log.notice("the clock is believed again")
        }
        clockTrouble = trouble
    }

    /// In another zone, days and windows begin at another moment.
    private func lookAtZone() {
        let source = ZoneSource.identity()
        if source == zoneSource { return }
        let isFirst = zoneSource == nil
        zoneSource = source
        ZoneSource.read()
        house.ledger.zoneChanged()
        expiryLook = nil
        if !isFirst { house.log.notice("the time zone was read anew", ["now": LocalTime(house.clocks.wall()).clock]) }
    }

    /// The files whose change may mean another zone.
    var zoneFiles: Set<FilePath> {
        house.settings.allRules.allSatisfy(\.isTimeless) || ZoneSource.identity() == nil ? [] : [ZoneSource.file]
    }

    /// When the clock is set, windows are evaluated again, and a destination that was refused for its certificate is
    /// tried again.
    func listenToClock() -> Int? {
        do {
            return try ClockEvents.shared.listen { [weak self] in
                Task { await self?.clockWasSet() }
            }
        } catch {
            house.log.warning(
                "a clock that is set will be noticed late", ["reason": "\(error)"])
            return nil
        }
    }

    func clockWasSet() async {
        expiryLook = nil
        do { try await reconsider() } catch {
            house.log.debug("waits go on as they were", ["reason": "\(error)"])
        }
        house.schedulingSignal.signal()
    }
}
