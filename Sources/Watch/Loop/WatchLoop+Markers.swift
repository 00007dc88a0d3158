internal import Core
internal import Linux

// Marker files, which say that other files are finished (`settle.marker`).

extension WatchLoop {
    /// Handles a name that a scan has seen. If it is a marker, the files that wait for it are checked now.
    func noteMarker(_ name: FilePath, in directory: Directory) {
        guard !awaited.isEmpty,
            let waiting = awaited.removeValue(forKey: Place(directory: directory, name: name))
        else { return }
        for file in waiting { settling.postpone(file, until: now) }
    }

    /// Handles a file named by an event. If it is the marker of a file that was not kept as a candidate, that file is
    /// looked up.
    func hearMarker(_ name: FilePath, in directory: Directory) {
        noteMarker(name, in: directory)
        guard directory.hasUnmarked else { return }
        for index in directory.root.rules {
            guard let marker = rules[index].settings.marker, name.bytes.withUnsafeBufferPointer(marker.isMarker) else {
                continue
            }
            if let file = marker.file(of: name) {
                if !settling.contains(Place(directory: directory, name: file)) { hear(of: file, in: directory, .heard) }
            } else {
                enqueue(directory, .reconcile)
            }
        }
    }

    /// Whether a file should become a candidate now. The number of files without their markers is limited: otherwise
    /// they would take the places of files that can settle.
    func isWorthWaiting(_ place: Place, _ rule: Int, _ relative: FilePath) -> Bool {
        guard let marker = rules[rule].settings.marker, !settling.contains(place),
            !isMarked(place, marker, relative)
        else { return true }
        if isFullOfWaiting {
            place.directory.hasUnmarked = true
            return false
        }
        wait(for: marker, of: place)
        return true
    }

    private var isFullOfWaiting: Bool {
        let most = max(1, pace.candidates / 4)
        guard awaited.count >= most else { return false }
        // Files that were removed without their markers have left their entries.
        if lastMarkerSweep.map({ now.since($0) > .seconds(10) }) ?? true {
            lastMarkerSweep = now
            awaited = awaited.filter { $0.value.contains { settling.contains($0) } }
        }
        return awaited.count >= most
    }

    /// Whether the marker of a file is there.
    func isMarked(_ place: Place, _ marker: MarkerName, _ relative: FilePath) -> Bool {
        let name = marker.marker(of: place.name)
        // A marker that cannot be examined counts as missing.
        return (try? place.directory.root.folder.open().statusIfPresent(at: relative.appending(name))) != nil
    }

    /// Remembers the file to be woken when the marker comes.
    func wait(for marker: MarkerName, of place: Place) {
        awaited[Place(directory: place.directory, name: marker.marker(of: place.name)), default: []].insert(place)
    }
}
