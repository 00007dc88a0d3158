internal import Core
internal import Media

extension LocalChecks {
    /// Whether pictures are made for the web page. Starts ffmpeg in its sandbox.
    static func thumbnails() -> CheckResult {
        guard ThumbnailMaker.installed() != nil else {
            return CheckResult(.ok, "the web page shows no pictures of videos and photos: ffmpeg is not installed")
        }
        guard let obstacle = ThumbnailMaker.obstacle() else {
            return CheckResult(.ok, "made by ffmpeg, in a sandbox that reads one file and has no network")
        }
        return CheckResult(
            .warning,
            "the web page shows no pictures of videos and photos: \(obstacle); `control: {thumbnails: false}` does without them"
        )
    }
}
