internal import Core

extension LocalTime {
    /// Formats with the date and time letters of strftime(3) that a file name needs: `%Y %y %m %d %H %M %S %F %T %%`;
    /// any other stays unchanged.
    package func formatted(_ format: String) -> String {
        var out = ""
        var letters = format.makeIterator()
        while let letter = letters.next() {
            guard letter == "%" else {
                out.append(letter)
                continue
            }
            switch letters.next() {
            case "Y": out += padded(year, 4)
            case "y": out += padded(year % 100, 2)
            case "m": out += padded(month, 2)
            case "d": out += padded(day, 2)
            case "H": out += padded(hour, 2)
            case "M": out += padded(minute, 2)
            case "S": out += padded(second, 2)
            case "F": out += date
            case "T": out += clock
            case "%": out += "%"
            case let other?: out += "%" + String(other)
            case nil: out += "%"
            }
        }
        return out
    }
}
