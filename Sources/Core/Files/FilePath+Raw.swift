extension FilePath {
    /// Takes bytes from the kernel, which never returns a NUL inside a name.
    ///
    /// ``init(bytes:)`` checks every byte; a scan of a million names saves that.
    package init(fromKernel bytes: [UInt8]) { self.init(unchecked: bytes) }

    /// The bytes of a directory entry.
    package init(fromKernel bytes: UnsafeBufferPointer<UInt8>) { self.init(unchecked: Array(bytes)) }
}
