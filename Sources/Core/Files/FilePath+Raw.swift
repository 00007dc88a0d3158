extension FilePath {
    /// Takes bytes that come from the kernel, which never hands out a NUL inside a name.
    ///
    /// ``init(bytes:)`` looks at every byte; a scan of a million names does without.
    package init(fromKernel bytes: [UInt8]) { self.init(unchecked: bytes) }

    /// The bytes of a directory entry.
    package init(fromKernel bytes: UnsafeBufferPointer<UInt8>) { self.init(unchecked: Array(bytes)) }
}
