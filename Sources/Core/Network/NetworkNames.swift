/// The visible networks of a machine. They are used to find rules that mean one of them and misspell its name.
///
/// A missing name alone is no mistake: a modem may be unplugged, and another Wi-Fi is used at another place.
package struct NetworkNames: Hashable, Sendable {
    package var interfaces: [String]
    /// Names of the present Wi-Fis, and of those within reach.
    package var ssids: [String]
    package var gateways: [HardwareAddress]

    package init(interfaces: [String] = [], ssids: [String] = [], gateways: [HardwareAddress] = []) {
        self.interfaces = interfaces
        self.ssids = ssids
        self.gateways = gateways
    }

    /// A rule with a name that does not exist here, but is close to one that does.
    package struct SuspectedTypo: Hashable, Sendable {
        /// The place of the list: `policy`, `destinations.nas`, `folder door`.
        package let place: String
        /// The number of the rule in it, from 0.
        package let number: Int
        /// A sentence for a person.
        package let text: String
    }

    package func suspectedTypos(in lists: [(place: String, rules: [NetworkRule])]) -> [SuspectedTypo] {
        // Names that another rule spells correctly are known to the author of the rules.
        let all = lists.flatMap(\.rules)
        var others = self
        let named = Set(all.compactMap(\.interface))
        others.interfaces.removeAll { named.contains($0) }
        let ssids = Set(all.compactMap(\.ssid))
        others.ssids.removeAll { ssids.contains($0) }
        let gateways = Set(all.compactMap(\.gateway))
        others.gateways.removeAll { gateways.contains($0) }
        return lists.flatMap { place, rules in
            rules.enumerated().flatMap { number, rule in
                texts(rule, others).map { SuspectedTypo(place: place, number: number, text: $0) }
            }
        }
    }

    private func texts(_ rule: NetworkRule, _ others: NetworkNames) -> [String] {
        func text(_ what: String, _ written: String, _ meant: String) -> String {
            "no \(what) `\(printable(written))` is here: did you mean `\(printable(meant))`?"
        }
        var texts: [String] = []
        if let written = rule.interface,
            !interfaces.contains(where: { Glob(written).matches(FilePath($0)) }),
            let meant = others.interfaces.lazy.compactMap({ self.intendedName(by: written, $0) }).first
                ?? kernelName(written, others.interfaces)
        {
            texts.append(text("interface", written, meant))
        }
        if let written = rule.ssid, !ssids.contains(written),
            let meant = others.ssids.first(where: { Self.isTypo($0, ofWiFi: written) })
        {
            texts.append(text("Wi-Fi", written, meant))
        }
        if let written = rule.gateway, !gateways.contains(written),
            let meant = others.gateways.first(where: { (1...2).contains(editDistance(from: "\(written)", to: "\($0)")) }
            )
        {
            texts.append(text("gateway", "\(written)", "\(meant)"))
        }
        return texts
    }

    // MARK: - Interfaces

    /// Prefixes that the kernel numbers: another number is another interface.
    private static let counted: Set<String> = [
        "bnep", "bond", "br", "can", "docker", "dummy", "eth", "ib", "lan", "lo", "lte", "lxcbr", "modem", "ppp",
        "rmnet",
        "sit", "tailscale", "tap", "team", "tun", "tunl", "usb", "veth", "virbr", "vlan", "vxlan", "wan", "wg", "wlan",
        "wpan", "wwan", "zt",
    ]

    /// The kind of interface that a name shows (systemd.net-naming-scheme(7) or the kernel's drivers): `wlan`, `en`;
    /// `nil` for other names.
    private static func kind(of name: String) -> String? {
        let letters = name.prefix { $0.isLetter || $0 == "_" || $0 == "-" }
        let rest = name.dropFirst(letters.count)
        if counted.contains(String(letters)), rest.allSatisfy({ $0.isNumber || $0 == "*" }) { return String(letters) }
        let scheme = name.prefix(2)
        guard ["en", "wl", "ww", "sl"].contains(scheme), name.count > 3, let place = name.dropFirst(2).first,
            "abcdiopPsvx".contains(place)
        else { return nil }
        return String(scheme)
    }

    /// - Returns: The interface `there`, if a name or a pattern like `wwan*` was meant to name it.
    private func intendedName(by written: String, _ there: String) -> String? {
        let name = written.lowercased()
        if name.hasSuffix("*"), !name.dropLast().contains(where: { "*?[\\".contains($0) }) {
            let letters = there.prefix { $0.isLetter }
            let stem = String(name.dropLast())
            guard Self.kind(of: name) == nil, stem.allSatisfy(\.isLetter), letters.count > 2,
                isClose(stem, String(letters))
            else { return nil }
            return "\(letters)*"
        }
        guard !name.contains(where: { "*?[\\".contains($0) }) else { return nil }
        let plain = String(name.filter { !$0.isWhitespace })
        let (mine, theirs) = (Self.kind(of: plain), Self.kind(of: there))
        if let mine, let theirs {
            // `wwan` is compared with `wwan0`. Ports of switches may be called `lan` and `wan`.
            if plain == mine, mine == theirs, Self.counted.contains(mine), mine != "lan", mine != "wan" { return there }
            // `eth1` beside `eth0` may be unplugged, and so may `wwan0` beside `wlan0`.
            if mine != theirs || Self.counted.contains(mine) { return plain == there ? there : nil }
            // A USB adapter that is named after its address.
            if plain.dropFirst(2).hasPrefix("x"), there.dropFirst(2).hasPrefix("x") { return nil }
        }
        return isClose(plain, there.lowercased()) ? there : nil
    }

    private func isClose(_ a: String, _ b: String) -> Bool {
        a.count > 2 && editDistance(from: a, to: b) <= (min(a.count, b.count) < 5 ? 1 : 2)
    }

    /// Names that the kernel assigns, on a machine with other names: `wlan0` for `wlp3s0`, where that is the only one.
    private func kernelName(_ written: String, _ there: [String]) -> String? {
        let schemes = ["wlan0": "wl", "wlan*": "wl", "eth0": "en", "eth*": "en", "wwan0": "ww", "wwan*": "ww"]
        guard let scheme = schemes[written.lowercased()] else { return nil }
        let family = String(written.lowercased().dropLast())
        if interfaces.contains(where: { Self.kind(of: $0) == family }) { return nil }
        let same = interfaces.filter { Self.kind(of: $0) == scheme }
        return same.count == 1 && there.contains(same[0]) ? same[0] : nil
    }

    // MARK: - Wi-Fi

    private static func isTypo(_ there: String, ofWiFi written: String) -> Bool {
        let (a, b) = (plain(written), plain(there))
        if a == b { return true }
        // Numbers and bands distinguish networks on purpose: `Box 7490`, `Home-5G`.
        let isAnother =
            a.filter { !$0.isNumber } == b.filter { !$0.isNumber } || withoutBand(a) == withoutBand(b)
            || differByCode(written, there)
        let longest = min(a.count, b.count)
        return !isAnother && editDistance(from: a, to: b) <= (longest < 4 ? 0 : longest < 7 ? 1 : 2)
    }

    /// Makers distinguish boxes of one kind by a last word of a few digits or letters: `Livebox-A3B0`.
    private static func differByCode(_ a: String, _ b: String) -> Bool {
        func parts(_ name: String) -> [Substring] { name.lowercased().split { !$0.isLetter && !$0.isNumber } }
        func isCode(_ word: Substring) -> Bool {
            word.allSatisfy(\.isHexDigit) || word.contains(where: \.isNumber) && word.contains(where: \.isLetter)
        }
        let (mine, theirs) = (parts(a), parts(b))
        guard mine.count > 1, mine.dropLast() == theirs.dropLast(), let one = mine.last, let other = theirs.last else {
            return false
        }
        return one != other && isCode(one) && isCode(other)
    }

    /// Removes differences that are easily overlooked: upper case, blanks, and characters that join words in their
    /// place.
    private static func plain(_ ssid: String) -> String {
        ssid.lowercased().filter { !$0.isWhitespace && !"-_".contains($0) }
    }

    private static func withoutBand(_ plain: String) -> Substring {
        for band in ["2.4ghz", "24ghz", "5ghz", "6ghz", "2.4g", "24g", "2g", "5g", "6g"] where plain.hasSuffix(band) {
            return plain.dropLast(band.count)
        }
        return plain[...]
    }
}
