import Core
import Linux
import TestKit
import Testing

@testable import Media

@Suite("CivilTime")
struct CivilTimeTests {
    @Test(
        "a time with an offset is a moment",
        arguments: zip(
            [
                "1970-01-01T00:00:00", "2024:05:01 12:20:30", "2000-02-29 23:59:60", "1904-01-01T00:00:00",
                "0001-01-01T00:00:00",
            ],
            [0, 1_714_566_030, 951_868_799, -2_082_844_800, -62_135_596_800] as [Int64]))
    func moments(_ text: String, _ seconds: Int64) throws {
        let time = try #require(CivilTime(text.utf8))
        #expect(time.moment() == WallTime(milliseconds: seconds * 1000))
        #expect(time.moment(offset: 7200) == WallTime(milliseconds: (seconds - 7200) * 1000))
    }

    @Test(
        "an impossible date is none",
        arguments: [
            "", "2024-05-01", "2024-02-30T00:00:00", "1900-02-29T00:00:00", "2024-13-01T00:00:00",
            "2024-00-01T00:00:00",
            "0000:00:00 00:00:00", "2024-05-01T24:00:00", "2024-05-01T00:60:00", "    :  :     :  :  ",
            "2024-05:01T00:00:00",
        ])
    func refused(_ text: String) { #expect(CivilTime(text.utf8) == nil) }

    @Test(
        "offsets",
        arguments: zip(
            ["Z", "+02:00", "-0330", "+14", "+15:00", "02:00", "+2:0", "", "+1", "+02:60"],
            [0, 7200, -12_600, 50_400, nil, nil, nil, nil, nil, nil] as [Int?]))
    func offsets(_ text: String, _ seconds: Int?) { #expect(CivilTime.offset(text.utf8) == seconds) }

    @Test("every day is one day after the one before it, and the reverse")
    func roundTrip() throws {
        for days in stride(from: -25_000, through: 80_000, by: 13) {
            let wall = WallTime(milliseconds: Int64(days) * 86_400_000 + 3_723_000)
            let utc = wall.utc
            let time = try #require(
                CivilTime(
                    year: utc.year, month: utc.month, day: utc.day, hour: utc.hour, minute: utc.minute,
                    second: utc.second))
            #expect(time.moment() == wall)
        }
    }
}
