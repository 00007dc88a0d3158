internal import API
internal import Config
internal import Core
internal import Linux
internal import Media

extension LocalChecks {
    /// Whether pictures are made for the web page, where it is served and is to have them. Starts ffmpeg in its sandbox.
    static func thumbnails(_ control: ControlSettings) async -> [CheckFinding] {
        // The closure throws nothing.
        guard control.thumbnails, control.remote?.servesPage == true, let result = try? await blocking({ thumbnails() })
        else { return [] }
        return [CheckFinding(about: "control", name: "thumbnails", result)]
    }

    private static func thumbnails() -> CheckResult {
        guard ThumbnailMaker.installed() != nil else {
            return CheckResult(.ok, "the web page shows no pictures of videos and photos: ffmpeg is not installed")
        }
        guard let obstacle = ThumbnailMaker.obstacle() else {
            return CheckResult(.ok, "made by ffmpeg, in a sandbox that reads one file and has no network")
        }
        return CheckResult(
            .warning,
            "the web page shows no pictures of videos and photos: \(obstacle); "
                + "`control: {thumbnails: false}` does without them")
    }
}
