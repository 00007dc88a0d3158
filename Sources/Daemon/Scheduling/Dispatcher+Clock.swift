internal import Config
internal import Core
internal import Linux

// What the clock on the wall shows, and whether to believe it.

extension Dispatcher {
    func lookAtClock() {
        // Nobody asks the clock who needs no clock.
        if house.settings.allRules.allSatisfy(\.isTimeless) {
            clockTrouble = nil
            return
        }
        lookAtZone()
        let now = house.clocks.together()
        let trouble = trust.look(
            wall: now.wall, monotonic: now.monotonic, isSynchronised: house.clocks.isSynchronised)
        if let trouble, clockTrouble?.text != trouble.text {
            house.log.warning("what depends on the time waits", ["reason": trouble.text])
        } else if trouble == nil, clockTrouble != nil {
            house.log.notice("the clock is believed again")
        }
        clockTrouble = trouble
    }

    /// Days begin at another moment in another zone, and so do windows.
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

    /// What may tell of another zone.
    var zoneFiles: Set<FilePath> {
        house.settings.allRules.allSatisfy(\.isTimeless) || ZoneSource.identity() == nil ? [] : [ZoneSource.file]
    }

    /// Windows are looked at anew when somebody sets the clock, and so is a destination that was refused for its certificate.
    func listenToClock() -> Int? {
        do {
            return try ClockNews.shared.listen { [weak self] in
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
        house.dispatchBell.ring()
    }
}
