package import Core

// The views of the web page alone: signing in, and small pictures.

/// A request for a link to the web page.
package struct WebLinkRequest: Codable, Sendable, Hashable {
    /// What the person who opens it may do.
    package var role: ControlRole

    package init(role: ControlRole = .operate) { self.role = role }
}

/// A link to the web page, good once.
package struct WebLinkView: Codable, Sendable, Hashable {
    /// The same page by each name and address of this machine.
    package var urls: [String]
    /// The same page by each name of `control.hosts`, where the address is for this machine alone and has no
    /// certificate: then a proxy in front of it has the names, and the certificate.
    package var proxied: [String]?
    /// How long the link is good, in seconds.
    package var seconds: Int64

    package init(urls: [String], proxied: [String]? = nil, seconds: Int64) {
        self.urls = urls
        self.proxied = proxied
        self.seconds = seconds
    }
}

/// The body of a request to sign in.
package struct SignInRequest: Codable, Sendable, Hashable {
    /// Of a link; absent with a token.
    package var code: String?

    package init(code: String? = nil) { self.code = code }
}

/// The sign-in of a browser.
package struct SessionView: Codable, Sendable, Hashable {
    /// The name of the token, or of the user who made the link.
    package var name: String
    package var role: ControlRole
    /// Goes with every change, as `X-Sluice-Token`; only in the answer to signing in.
    package var token: String?
    package var until: String

    package init(name: String, role: ControlRole, token: String? = nil, until: String) {
        self.name = name
        self.role = role
        self.token = token
        self.until = until
    }
}

/// A small picture of a file.
package struct ThumbnailView: Sendable, Hashable {
    /// A JPEG of at most 320 pixels in each direction, without metadata.
    package var bytes: [UInt8]
    /// Identifies these bytes.
    package var tag: String

    package init(bytes: [UInt8], tag: String) {
        self.bytes = bytes
        self.tag = tag
    }
}
