internal import Core
internal import Linux

// Files that say of others that they are finished (`settle.marker`).

extension Lookout {
    /// A name was seen by a scan. When it is a marker, those that wait for it are looked at now.
    func noteMarker(_ name: FilePath, in directory: Directory) {
        guard !awaited.isEmpty,
            let waiting = awaited.removeValue(forKey: Place(directory: directory, name: name))
        else { return }
        for file in waiting { settling.postpone(file, until: now) }
    }

    /// An event named a file. When it is the marker of one that was not kept in mind, that one is looked for.
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

    /// Whether a file is worth keeping in mind now. Of those without their markers only so many are: the others would take
    /// the room of files that can settle.
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
        // Files that went without their markers have left their entries.
        if lastMarkerSweep.map({ now.since($0) > .seconds(10) }) ?? true {
            lastMarkerSweep = now
            awaited = awaited.filter { $0.value.contains { settling.contains($0) } }
        }
        return awaited.count >= most
    }

    /// Whether the marker of a file is there.
    func isMarked(_ place: Place, _ marker: MarkerName, _ relative: FilePath) -> Bool {
        let name = marker.marker(of: place.name)
        // One that cannot be looked at is not there.
        return (try? place.directory.root.folder.open().lookIfPresent(at: relative.appending(name))) != nil
    }

    /// Remembers whom to wake when the marker comes.
    func wait(for marker: MarkerName, of place: Place) {
        awaited[Place(directory: place.directory, name: marker.marker(of: place.name)), default: []].insert(place)
    }
}
