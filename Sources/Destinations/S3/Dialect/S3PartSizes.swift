/// Sizes of the parts that other programs make objects of.
enum S3PartSizes {
    /// In MiB: rclone begins with 5, the AWS CLI and boto3 with 8; the others are values that people set.
    private static let usual: [Int64] = [5, 8, 10, 15, 16, 20, 25, 32, 50, 64, 100, 128, 256, 512]

    /// The sizes that divide a file into so many parts, ours first.
    ///
    /// - Parameters:
    ///   - size: Bytes of the file.
    ///   - count: Parts of the object, as its ETag names them.
    ///   - ours: Bytes of a part of our own uploads.
    static func likely(for size: Int64, in count: Int64, ours: Int64) -> [Int64] {
        // The count comes from a server. No file of a service is near the limit of the numbers here.
        guard size > 0, size < 1 << 60, count > 0, count <= size else { return [] }
        let mebibyte: Int64 = 1 << 20
        // A client that would need too many parts takes the next whole number of MiB.
        let smallest = ((size - 1) / count / mebibyte + 1) * mebibyte
        var sizes: [Int64] = []
        for candidate in [ours] + usual.map({ $0 * mebibyte }) + [smallest]
        where candidate > 0 && (size - 1) / candidate + 1 == count && !sizes.contains(candidate) {
            sizes.append(candidate)
        }
        return sizes
    }
}
