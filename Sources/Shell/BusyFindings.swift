internal import Config
internal import Core
internal import Daemon

/// What each `busy` says now, wherever it stands. Who is named twice is asked once.
func busyFindings(_ settings: Settings) async -> [Finding] {
    var said: [BusyRule: CheckResult] = [:]
    var findings: [Finding] = []
    for (place, rule) in settings.busyRules {
        let result: CheckResult
        if let known = said[rule] {
            result = known
        } else {
            let report = await BusyLook.report(rule)
            result = CheckResult(report.isFree ? .ok : .warning, report.text)
            said[rule] = result
        }
        findings.append(Finding(about: "busy", name: place, result))
    }
    return findings
}
