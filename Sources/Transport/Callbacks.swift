internal import CCurl
internal import Core
internal import Glibc
internal import Linux

// Callbacks of libcurl. They always run on the loop's thread, with the transfer's or the loop's address as context. The
// loop's table keeps a transfer alive for as long as libcurl has its handle, and the thread itself keeps the loop
// alive.

extension CurlTransfer {
    func setCallbacks(_ easy: UnsafeMutableRawPointer, _ loop: CurlLoop) {
        let this = Unmanaged.passUnretained(self).toOpaque()
        let shared = Unmanaged.passUnretained(loop).toOpaque()
        sluice_set_bytes_function(easy, CURLOPT_READFUNCTION, readBody)
        sluice_set_pointer(easy, CURLOPT_READDATA, this)
        sluice_set_seek_function(easy, seekBody)
        sluice_set_pointer(easy, CURLOPT_SEEKDATA, this)
        sluice_set_bytes_function(easy, CURLOPT_WRITEFUNCTION, receiveBody)
        sluice_set_pointer(easy, CURLOPT_WRITEDATA, this)
        sluice_set_bytes_function(easy, CURLOPT_HEADERFUNCTION, receiveHeader)
        sluice_set_pointer(easy, CURLOPT_HEADERDATA, this)
        sluice_set_progress_function(easy, progress)
        sluice_set_pointer(easy, CURLOPT_XFERINFODATA, this)
        sluice_set_long(easy, CURLOPT_NOPROGRESS, 0)
        sluice_set_ready_function(easy, ready)
        sluice_set_pointer(easy, CURLOPT_PREREQDATA, this)
        sluice_set_open_function(easy, opening)
        sluice_set_pointer(easy, CURLOPT_OPENSOCKETDATA, this)
        sluice_set_socket_function(easy, opened)
        sluice_set_pointer(easy, CURLOPT_SOCKOPTDATA, this)
        // A connection outlives its transfer, so the loop is notified of its end.
        sluice_set_close_function(easy, closing)
        sluice_set_pointer(easy, CURLOPT_CLOSESOCKETDATA, shared)
        // Past a proxy with TLS, libcurl loses the reason for which it refuses a server's certificate: it clears
        // OpenSSL's errors when it sends the alert (`ossl_send` in lib/vtls/openssl.c).
        if request.proxy?.scheme == .https, WebAddress(request.url).scheme == "https" {
            sluice_set_debug_function(easy, noteAlert)
            sluice_set_pointer(easy, CURLOPT_DEBUGDATA, this)
            sluice_set_long(easy, CURLOPT_VERBOSE, 1)
        }
        self.loop = loop
    }
}

private func transfer(_ context: UnsafeMutableRawPointer?) -> CurlTransfer? {
    context.map { Unmanaged<CurlTransfer>.fromOpaque($0).takeUnretainedValue() }
}

/// Supplies the next bytes of the body.
private func readBody(
    _ into: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let into, let this = transfer(context), let source = this.source else { return 0 }
    guard this.hasBytes() else { return Int(CURL_READFUNC_PAUSE) }
    var room = size * count
    if !this.request.throttles.isEmpty, source.left > 0 {
        room = this.grant(upTo: Int(min(Int64(room), source.left)))
        if room == 0 { return Int(CURL_READFUNC_PAUSE) }
    }
    do {
        return try source.read(into: UnsafeMutableRawBufferPointer(start: into, count: room))
    } catch {
        this.objection = (.sourceFile, error.description)
        return Int(CURL_READFUNC_ABORT)
    }
}

/// Goes back to an earlier offset, when a request is sent again over a fresh connection.
private func seekBody(_ context: UnsafeMutableRawPointer?, _ offset: Int, _ origin: CInt) -> CInt {
    guard let source = transfer(context)?.source, origin == SEEK_SET, source.seek(to: Int64(offset)) else {
        return CInt(CURL_SEEKFUNC_FAIL)
    }
    return CInt(CURL_SEEKFUNC_OK)
}

/// Takes the next bytes of the answer's body. Any result but their number stops the transfer.
private func receiveBody(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let bytes, let this = transfer(context) else { return 0 }
    let piece = UnsafeRawBufferPointer(start: bytes, count: size * count)
    this.received()
    if let onBody = this.request.onBody {
        if onBody(Array(piece)) { return piece.count }
        this.objection = (.cancelled, "stopped by the reader of the answer")
        return 0
    }
    if this.answer.receive(body: piece) { return piece.count }
    this.objection = (.tooLarge, TransportError.tooLong(this.request.answerLimit))
    return 0
}

private func receiveHeader(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let bytes, let this = transfer(context) else { return 0 }
    let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
    if Answer.isGarbled(line) {
        this.objection = (.reset, "the answer does not begin with a status of HTTP")
        return 0
    }
    if this.answer.receive(header: line) {
        if !this.answer.isInterim { this.received() }
        return line.count
    }
    this.objection = (.tooLarge, "the header of the answer is longer than \(Answer.headerLimit) bytes")
    return 0
}

private func progress(
    _ context: UnsafeMutableRawPointer?, _: Int, _ received: Int, _: Int, _ sent: Int
) -> CInt {
    transfer(context)?.progressed(sent: Int64(sent), received: Int64(received))
    return 0
}

/// Called with each message of TLS, among other things. An alert is the only one of two bytes: its level, of which 2 is
/// fatal, and its number (RFC 8446, section 6).
private func noteAlert(
    _: UnsafeMutableRawPointer?, _ kind: curl_infotype, _ bytes: UnsafeMutablePointer<CChar>?, _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> CInt {
    guard kind == CURLINFO_SSL_DATA_OUT, count == 2, let bytes, bytes[0] == 2 else { return 0 }
    transfer(context)?.stage.sentAlert = UInt8(bitPattern: bytes[1])
    return 0
}

/// Called when connected, over a new or a kept connection; the request is sent next.
private func ready(
    _ context: UnsafeMutableRawPointer?, _ peer: UnsafeMutablePointer<CChar>?, _ local: UnsafeMutablePointer<CChar>?,
    _ peerPort: CInt, _ localPort: CInt
) -> CInt {
    guard let this = transfer(context) else { return CInt(CURL_PREREQFUNC_ABORT) }
    // Before it may object: bytes that were already sent over this connection are its own.
    if let local, let peer {
        let ends = SocketEnds(
            local: String(cString: local), localPort: Int(localPort), peer: String(cString: peer),
            peerPort: Int(peerPort))
        this.loop?.connections.recordUse(by: this, ends)
    }
    return CInt(this.connected() ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT)
}

/// Called before each connection, with its address: a name may have several.
private func opening(
    _ context: UnsafeMutableRawPointer?, _: curlsocktype, _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
    guard let this = transfer(context), let address else { return -1 }
    let (family, kind, number) = (address.pointee.family, address.pointee.socktype, address.pointee.protocol)
    if family == AF_INET || family == AF_INET6 {
        // The member is declared with the length of the shortest address; after it come the bytes that `addrlen`
        // counts.
        let bytes = UnsafeRawBufferPointer(
            start: UnsafeRawPointer(address) + (MemoryLayout<curl_sockaddr>.offset(of: \.addr) ?? 0),
            count: Int(address.pointee.addrlen))
        // sockaddr_in and sockaddr_in6 have the port at the same place (ip(7), ipv6(7)).
        guard let target = IPAddress(family == AF_INET ? bytes[4..<8] : bytes[8..<24]),
            this.mayConnect(to: target, port: UInt16(bytes[2]) << 8 | UInt16(bytes[3]))
        else { return -1 }
    }
    return socket(family, kind | CInt(SOCK_CLOEXEC.rawValue), number)
}

private func opened(_ context: UnsafeMutableRawPointer?, _ socket: CInt, _: curlsocktype) -> CInt {
    guard let this = transfer(context) else { return CInt(CURL_SOCKOPT_ERROR) }
    guard this.bindToInterface(socket) else { return CInt(CURL_SOCKOPT_ERROR) }
    Sockets.prepareForUpload(socket, timeout: this.request.limits.sendingStall)
    Sockets.mark(socket, this.request.trafficClass)
    this.loop?.connections.opened(socket, by: this)
    return CInt(CURL_SOCKOPT_OK)
}

private func closing(_ context: UnsafeMutableRawPointer?, _ socket: CInt) -> CInt {
    if let context { Unmanaged<CurlLoop>.fromOpaque(context).takeUnretainedValue().connections.closing(socket) }
    return close(socket)
}
