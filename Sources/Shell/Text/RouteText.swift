internal import API
internal import Core

/// By which way uploads reach each destination, and why not by another one.
func routeLines(_ routes: RoutesView, _ console: Console) -> [String] {
    routes.destinations.flatMap { one in
        let name = printable(one.destination)
        var lines: [String] = []
        if let way = one.way { lines.append("\(name)  \(routeText(way))") }
        return lines
            + (one.otherWays ?? []).map { other in
                console.styled(
                    "\(name)  not by \(printable(other.interface ?? "")): \(printable(other.text))", .yellow)
            }
    }
}

/// `by wan0, from 192.0.2.7, it is not metered`
func routeText(_ way: RouteView) -> String {
    let place = [way.interface.map { "by \($0)" }, way.address.map { "from \($0)" }].compactMap { $0 }
    return printable((place + [way.text]).joined(separator: ", "))
}
