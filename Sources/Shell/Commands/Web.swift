internal import API
internal import Control
internal import Core

extension Verb {
    static let web: Verb = Verb(
        "web", "print a link that opens the web page and signs you in",
        details: [
            "The link is good once, and for one minute. The same page has a line for each name and address of this "
                + "machine. It needs `control.listen` in the configuration, and a user who may give commands.",
            "With --view, the link is good to see everything and to change nothing.",
        ],
        options: [Option(flag: "view", "a link to look only")] + Option.client,
        examples: [
            ("sluice web", "Prints the link for your browser."),
            ("ssh nas sudo sluice web", "Prints the link of another machine."),
        ]
    ) { call in
        let request = WebLinkRequest(role: call.arguments.has("view") ? .view : .operate)
        let link = try await call.withClient { try await $0.webLink(request) }
        if call.json {
            try call.printJSON(link)
        } else {
            for url in link.urls { try call.console.line(url) }
            for url in link.proxied ?? [] { try call.console.line("\(url)  (through your proxy with a certificate)") }
            call.console.error("good for one sign-in within \(Units.duration(link.seconds))")
        }
        return .ok
    }
}
