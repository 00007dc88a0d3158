/// The MIME type by a file's ending, from IANA and the shared MIME database.
package enum MediaType {
    private static let byEnding: [String: String] = [
        "mp4": "video/mp4", "m4v": "video/mp4", "mov": "video/quicktime", "mkv": "video/x-matroska",
        "webm": "video/webm", "avi": "video/x-msvideo", "mts": "video/mp2t", "m2ts": "video/mp2t", "ts": "video/mp2t",
        "mpg": "video/mpeg", "mpeg": "video/mpeg", "mxf": "application/mxf", "3gp": "video/3gpp",
        "wmv": "video/x-ms-wmv",
        "flv": "video/x-flv", "ogv": "video/ogg", "lrv": "video/mp4", "insv": "video/mp4",
        "jpg": "image/jpeg", "jpeg": "image/jpeg", "png": "image/png", "gif": "image/gif", "webp": "image/webp",
        "heic": "image/heic", "heif": "image/heif", "avif": "image/avif", "tif": "image/tiff", "tiff": "image/tiff",
        "dng": "image/x-adobe-dng", "cr2": "image/x-canon-cr2", "cr3": "image/x-canon-cr3", "nef": "image/x-nikon-nef",
        "arw": "image/x-sony-arw", "raf": "image/x-fuji-raf", "thm": "image/jpeg", "bmp": "image/bmp",
        "svg": "image/svg+xml",
        "mp3": "audio/mpeg", "m4a": "audio/mp4", "aac": "audio/aac", "wav": "audio/x-wav", "flac": "audio/flac",
        "ogg": "audio/ogg", "opus": "audio/ogg",
        "srt": "application/x-subrip", "vtt": "text/vtt", "xml": "application/xml", "json": "application/json",
        "txt": "text/plain", "csv": "text/csv", "pdf": "application/pdf", "zip": "application/zip",
        "gz": "application/gzip",
    ]

    /// `application/octet-stream` for an unknown ending.
    package static func of(_ name: FilePath) -> String {
        name.fileExtension.flatMap { $0.text }.flatMap { byEnding[$0.lowercased()] } ?? "application/octet-stream"
    }
}
