# fish completion for sluice, made by `sluice completions fish` from the program's own tables.

# True if the verb on the command line is this one; without an argument, true if there is no verb.
function __sluice_at
    set -l words (commandline -opc)
    set -l verb
    set -l value no
    for word in $words[2..]
        if test $value = yes
            set value no
        else if contains -- $word --config --socket
            set value yes
        else if not string match -q -- '-*' $word
            set verb $word
            break
        end
    end
    test "$verb" = "$argv[1]"
end

# Names from the daemon or the configuration; no names if neither answers at once.
function __sluice_ask
    set -l words (commandline -opc)
    set -l given
    for i in (seq 2 (count $words))
        switch $words[$i]
            case --config --socket
                set -a given $words[$i] $words[(math $i + 1)]
            case '--config=*' '--socket=*'
                set -a given $words[$i]
        end
    end
    $words[1] completions $argv $given 2>/dev/null </dev/null
end

complete -c sluice -f
complete -c sluice -n '__sluice_at' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at' -l help -d 'print this text'
complete -c sluice -n '__sluice_at' -l version -d 'the version of this program'
complete -c sluice -n '__sluice_at' -a run -d 'run the daemon, in the foreground'
complete -c sluice -n '__sluice_at' -a init -d 'set up one folder and one destination, by questions, options or a file of answers'
complete -c sluice -n '__sluice_at' -a demo -d 'show an upload that is cut in the middle and continues, on this machine'
complete -c sluice -n '__sluice_at' -a check -d 'check the configuration, and the folders, hooks and destinations that it names'
complete -c sluice -n '__sluice_at' -a destinations -d 'list the kinds of destination, their presets and their keys'
complete -c sluice -n '__sluice_at' -a config -d 'print the effective configuration, and where each setting comes from'
complete -c sluice -n '__sluice_at' -a report -d 'write what is needed to judge this machine from afar into one file'
complete -c sluice -n '__sluice_at' -a edit -d 'change the configuration in an editor, check it, and reload the daemon'
complete -c sluice -n '__sluice_at' -a doctor -d 'find out what prevents Sluice from working well on this machine'
complete -c sluice -n '__sluice_at' -a hook -d 'send a test event to a hook, and print the result'
complete -c sluice -n '__sluice_at' -a rebuild -d 'build a new database when the old one is damaged or lost'
complete -c sluice -n '__sluice_at' -a receive -d 'receive uploads: a tus server that stores files in a folder'
complete -c sluice -n '__sluice_at' -a status -d 'show what the daemon does, and why uploads wait'
complete -c sluice -n '__sluice_at' -a top -d 'watch and control the uploads on a full screen'
complete -c sluice -n '__sluice_at' -a web -d 'print a link that opens the web page and signs you in'
complete -c sluice -n '__sluice_at' -a list -d 'show uploads, newest first'
complete -c sluice -n '__sluice_at' -a show -d 'show everything about one upload'
complete -c sluice -n '__sluice_at' -a why -d 'explain why an upload waits, or why a file is not uploaded'
complete -c sluice -n '__sluice_at' -a plan -d 'forecast when uploads run, and which will not finish in time'
complete -c sluice -n '__sluice_at' -a policy -d 'print the rules as sentences, or decide about a file that does not exist yet'
complete -c sluice -n '__sluice_at' -a usage -d 'show how much was sent and received, and what is left of each quota; correct the count of a quota'
complete -c sluice -n '__sluice_at' -a quota -d 'show how much may still be sent to a destination: its free space, and its quotas'
complete -c sluice -n '__sluice_at' -a remote -d 'list the objects at a destination, and which of them this installation uploaded'
complete -c sluice -n '__sluice_at' -a orphans -d 'list or remove unfinished uploads at a destination that no upload here continues'
complete -c sluice -n '__sluice_at' -a trace -d 'record the requests to a destination, and their answers'
complete -c sluice -n '__sluice_at' -a metrics -d 'print metrics in the text format of Prometheus'
complete -c sluice -n '__sluice_at' -a events -d 'follow events, one on each line'
complete -c sluice -n '__sluice_at' -a add -d 'queue files, folders or standard input for upload'
complete -c sluice -n '__sluice_at' -a pause -d 'hold uploads until you resume them'
complete -c sluice -n '__sluice_at' -a resume -d 'release uploads that you paused'
complete -c sluice -n '__sluice_at' -a cancel -d 'cancel uploads, and remove their unfinished data from the destination'
complete -c sluice -n '__sluice_at' -a retry -d 'begin failed or cancelled uploads again'
complete -c sluice -n '__sluice_at' -a priority -d 'send ongoing uploads earlier or later than others'
complete -c sluice -n '__sluice_at' -a remove -d 'take finished uploads off their lists; uploaded files and sources stay'
complete -c sluice -n '__sluice_at' -a flush -d 'clear the lists of finished uploads'
complete -c sluice -n '__sluice_at' -a allow -d 'make an exception from policy rules for uploads, for a while'
complete -c sluice -n '__sluice_at' -a limit -d 'limit the rate of all transfers together for a while'
complete -c sluice -n '__sluice_at' -a reload -d 'make the daemon read its configuration again'
complete -c sluice -n '__sluice_at' -a rescan -d 'scan watched folders now, for files that no event reported'
complete -c sluice -n '__sluice_at' -a folder -d 'accept the directory that has replaced the one of a watched folder'
complete -c sluice -n '__sluice_at' -a systemd-paths -d 'print the systemd drop-in that lets the service write to the configured folders'
complete -c sluice -n '__sluice_at' -a completions -d 'print the completion script of a shell'
complete -c sluice -n '__sluice_at' -a version -d 'show the version of this program'
complete -c sluice -n '__sluice_at' -a help -d 'list the verbs, or explain one'

complete -c sluice -n '__sluice_at run' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at run' -l log-level -d 'error, warning, notice, info (default) or debug' -x -a 'error warning notice info debug'
complete -c sluice -n '__sluice_at run' -l log-format -d 'text (default) or json' -x -a 'text json'
complete -c sluice -n '__sluice_at run' -l once -d 'exit when no upload can make progress'
complete -c sluice -n '__sluice_at run' -l wait -d 'with --once: wait at most this long for holds to end and servers to answer: 30s, 5m (default: 0s)' -x
complete -c sluice -n '__sluice_at run' -l json -d 'with --once: print what is left as one JSON object'
complete -c sluice -n '__sluice_at run' -l help -d 'print this text'

complete -c sluice -n '__sluice_at init' -l folder -d 'the folder to watch' -r -F
complete -c sluice -n '__sluice_at init' -l to -d 'a folder, the address of a tus server, or a type of destination with settings' -x
complete -c sluice -n '__sluice_at init' -l token-file -d 'a file with the token or the key of the destination' -r -F
complete -c sluice -n '__sluice_at init' -l after -d 'keep (default), delete or move=TEMPLATE: what happens to an uploaded source' -x
complete -c sluice -n '__sluice_at init' -l metered -d 'whether to use metered networks' -x -a 'pause allow'
complete -c sluice -n '__sluice_at init' -l hours -d 'send only at these times: 22:00-06:00' -x
complete -c sluice -n '__sluice_at init' -l start -d 'start the service now, and at each boot'
complete -c sluice -n '__sluice_at init' -l test-file -d 'removable, any or none: the test file: where it can be removed (default), to any destination, or not at all' -x -a 'removable any none'
complete -c sluice -n '__sluice_at init' -l offline -d 'do not contact the destination'
complete -c sluice -n '__sluice_at init' -l from -d 'read the answers from a YAML file' -r -F
complete -c sluice -n '__sluice_at init' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at init' -l help -d 'print this text'

complete -c sluice -n '__sluice_at demo' -l keep -d 'afterwards let the receiver and the daemon run until Ctrl-C, and leave the folder'
complete -c sluice -n '__sluice_at demo' -l config -d 'ignored: this verb reads no configuration' -r -F
complete -c sluice -n '__sluice_at demo' -l help -d 'print this text'

complete -c sluice -n '__sluice_at check' -l running -d 'let the running daemon check its loaded configuration'
complete -c sluice -n '__sluice_at check' -l folder -d 'only this folder' -x -a '(__sluice_ask folders)'
complete -c sluice -n '__sluice_at check' -l destination -d 'only this destination (as DESTINATION)' -x -a '(__sluice_ask destinations)'
complete -c sluice -n '__sluice_at check' -l test-file -d 'removable, any or none: send one file to each destination, and remove it there; nothing is sent by default' -x -a 'removable any none'
complete -c sluice -n '__sluice_at check' -l test-size -d 'with --test-file: the size of that file, to see the speed; 100MB at most' -x
complete -c sluice -n '__sluice_at check' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at check' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at check' -l socket -d 'with --running: the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at check' -l help -d 'print this text'
complete -c sluice -n '__sluice_at check' -a '(__sluice_ask destinations)'

complete -c sluice -n '__sluice_at destinations' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at destinations' -l help -d 'print this text'
complete -c sluice -n '__sluice_at destinations' -a 'tus resumable-http directory chunked-form vimeo s3 oss apsara-vod'

complete -c sluice -n '__sluice_at config' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at config' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at config' -l help -d 'print this text'
complete -c sluice -n '__sluice_at config' -a 'schema'

complete -c sluice -n '__sluice_at report' -l output -d 'a new file instead of standard output (or -o FILE)' -r -F
complete -c sluice -n '__sluice_at report' -l format -d 'html (default) or markdown' -x -a 'html markdown'
complete -c sluice -n '__sluice_at report' -l hide-names -d 'replace names of files, and of folders below the watched ones, by marks'
complete -c sluice -n '__sluice_at report' -l offline -d 'contact no destination'
complete -c sluice -n '__sluice_at report' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at report' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at report' -l help -d 'print this text'

complete -c sluice -n '__sluice_at edit' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at edit' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at edit' -l help -d 'print this text'

complete -c sluice -n '__sluice_at doctor' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at doctor' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at doctor' -l help -d 'print this text'

complete -c sluice -n '__sluice_at hook' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at hook' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at hook' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at hook' -l help -d 'print this text'

complete -c sluice -n '__sluice_at rebuild' -l dry-run -d 'show what it would do, and change nothing'
complete -c sluice -n '__sluice_at rebuild' -l yes -d 'build the new database'
complete -c sluice -n '__sluice_at rebuild' -l unknown -d 'what to do with files that no destination can confirm: fail (default), send or assume-sent' -x -a 'fail send assume-sent'
complete -c sluice -n '__sluice_at rebuild' -l offline -d 'contact no destination, so that none can confirm a file'
complete -c sluice -n '__sluice_at rebuild' -l force -d 'rebuild even if the database is intact, or a watched folder is absent'
complete -c sluice -n '__sluice_at rebuild' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at rebuild' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at rebuild' -l help -d 'print this text'

complete -c sluice -n '__sluice_at receive' -l into -d 'where files appear; created if it is missing' -x -a '(__fish_complete_directories)'
complete -c sluice -n '__sluice_at receive' -l listen -d 'HOST:PORT or :PORT (default: 127.0.0.1:1080); port 0 lets the system choose' -x
complete -c sluice -n '__sluice_at receive' -l token-file -d 'accept only senders with the token in this file (Authorization: Bearer)' -r -F
complete -c sluice -n '__sluice_at receive' -l trusted-proxy -d 'trust X-Forwarded-For from this proxy or network: 127.0.0.1, 10.0.0.0/8' -x
complete -c sluice -n '__sluice_at receive' -l max-size -d 'refuse larger files: 20 GB, 500 MiB' -x
complete -c sluice -n '__sluice_at receive' -l config -d 'ignored: this verb reads no configuration' -r -F
complete -c sluice -n '__sluice_at receive' -l log-level -d 'error, warning, notice, info (default) or debug' -x -a 'error warning notice info debug'
complete -c sluice -n '__sluice_at receive' -l log-format -d 'text (default) or json' -x -a 'text json'
complete -c sluice -n '__sluice_at receive' -l help -d 'print this text'

complete -c sluice -n '__sluice_at status' -l follow -d 'redraw the status every second'
complete -c sluice -n '__sluice_at status' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at status' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at status' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at status' -l help -d 'print this text'

complete -c sluice -n '__sluice_at top' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at top' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at top' -l help -d 'print this text'

complete -c sluice -n '__sluice_at web' -l view -d 'a link to look only'
complete -c sluice -n '__sluice_at web' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at web' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at web' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at web' -l help -d 'print this text'

complete -c sluice -n '__sluice_at list' -l list -d 'only this list: ongoing, completed, failed or cancelled, or the history of uploads that left these lists' -x -a 'ongoing completed failed cancelled history'
complete -c sluice -n '__sluice_at list' -l state -d 'only this state: cancelled, completed, expired, failed, finishing, opening, paused, queued, settling, staging, superseded, uploading or waiting' -x -a 'cancelled completed expired failed finishing opening paused queued settling staging superseded uploading waiting'
complete -c sluice -n '__sluice_at list' -l destination -d 'only uploads to this destination' -x -a '(__sluice_ask destinations)'
complete -c sluice -n '__sluice_at list' -l folder -d 'only files of this folder' -x -a '(__sluice_ask folders)'
complete -c sluice -n '__sluice_at list' -l text -d 'only paths that contain this text, in upper or lower case' -x
complete -c sluice -n '__sluice_at list' -l context -d 'only uploads with this context' -x
complete -c sluice -n '__sluice_at list' -l since -d 'only uploads added since then: 18:00, 2026-11-20, 2026-11-20T18:00 or 2d (two days ago)' -x
complete -c sluice -n '__sluice_at list' -l until -d 'only uploads added before then, in the same form' -x
complete -c sluice -n '__sluice_at list' -l limit -d 'at most this many rows, newest first (default: 100; at most 1000)' -x
complete -c sluice -n '__sluice_at list' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at list' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at list' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at list' -l help -d 'print this text'

complete -c sluice -n '__sluice_at show' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at show' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at show' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at show' -l help -d 'print this text'
complete -c sluice -n '__sluice_at show' -a '(__sluice_ask uploads)' -F

complete -c sluice -n '__sluice_at why' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at why' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at why' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at why' -l help -d 'print this text'
complete -c sluice -n '__sluice_at why' -a '(__sluice_ask uploads)' -F

complete -c sluice -n '__sluice_at plan' -l until -d 'end of the forecast: 18:00, 2026-11-25, 2026-11-25T18:00 or 2d (in two days); default: when all is sent, at most a month' -x
complete -c sluice -n '__sluice_at plan' -l rate -d 'assume this rate for all transfers together: 2MB/s, 8Mbit/s' -x
complete -c sluice -n '__sluice_at plan' -l from -d 'start of the forecast, in the form of --until; default: now' -x
complete -c sluice -n '__sluice_at plan' -l on -d 'a network of `policy.networks`, with the facts that its item states' -x
complete -c sluice -n '__sluice_at plan' -l interface -d 'the interface of the network: eth0, wwan0' -x
complete -c sluice -n '__sluice_at plan' -l ssid -d 'the name of the Wi-Fi' -x
complete -c sluice -n '__sluice_at plan' -l gateway -d 'the hardware address of the router' -x
complete -c sluice -n '__sluice_at plan' -l metered -d 'whether the network is metered' -x -a 'yes no'
complete -c sluice -n '__sluice_at plan' -l roaming -d 'whether the modem roams' -x -a 'yes no'
complete -c sluice -n '__sluice_at plan' -l lan -d 'whether the destination is in the local network' -x -a 'yes no'
complete -c sluice -n '__sluice_at plan' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at plan' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at plan' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at plan' -l help -d 'print this text'

complete -c sluice -n '__sluice_at policy' -l folder -d 'the folder of the file; not needed where there is only one' -x -a '(__sluice_ask folders)'
complete -c sluice -n '__sluice_at policy' -l to -d 'this destination alone' -x -a '(__sluice_ask destinations)'
complete -c sluice -n '__sluice_at policy' -l at -d 'when: 03:00, "2026-12-01 03:00", 2d (in two days); default: now' -x
complete -c sluice -n '__sluice_at policy' -l on -d 'a network of `policy.networks`, with the facts that its item states' -x
complete -c sluice -n '__sluice_at policy' -l interface -d 'the interface of the network: eth0, wwan0' -x
complete -c sluice -n '__sluice_at policy' -l ssid -d 'the name of the Wi-Fi' -x
complete -c sluice -n '__sluice_at policy' -l gateway -d 'the hardware address of the router' -x
complete -c sluice -n '__sluice_at policy' -l metered -d 'whether the network is metered' -x -a 'yes no'
complete -c sluice -n '__sluice_at policy' -l roaming -d 'whether the modem roams' -x -a 'yes no'
complete -c sluice -n '__sluice_at policy' -l lan -d 'whether the destination is in the local network' -x -a 'yes no'
complete -c sluice -n '__sluice_at policy' -l battery -d 'the machine runs on its battery with this charge, like 40%; or not' -x
complete -c sluice -n '__sluice_at policy' -l temperature -d 'the temperature of the machine in °C, like 75' -x
complete -c sluice -n '__sluice_at policy' -l size -d 'the size of the file: 30MB' -x
complete -c sluice -n '__sluice_at policy' -l kind -d 'the kind of the file: video, photo, audio, other' -x
complete -c sluice -n '__sluice_at policy' -l duration -d 'how long the recording is: 10s' -x
complete -c sluice -n '__sluice_at policy' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at policy' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at policy' -l help -d 'print this text'
complete -c sluice -n '__sluice_at policy' -a 'explain test'

complete -c sluice -n '__sluice_at usage' -l days -d 'the last N days (default: 7)' -x
complete -c sluice -n '__sluice_at usage' -l months -d 'the last N months (default: 3)' -x
complete -c sluice -n '__sluice_at usage' -l by -d 'show the parts of each sum by destination, folder or network' -x -a 'destination folder network'
complete -c sluice -n '__sluice_at usage' -l destination -d 'only bytes to this destination' -x -a '(__sluice_ask destinations)'
complete -c sluice -n '__sluice_at usage' -l folder -d 'only bytes of this folder' -x -a '(__sluice_ask folders)'
complete -c sluice -n '__sluice_at usage' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at usage' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at usage' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at usage' -l help -d 'print this text'
complete -c sluice -n '__sluice_at usage' -a 'set'

complete -c sluice -n '__sluice_at quota' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at quota' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at quota' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at quota' -l help -d 'print this text'
complete -c sluice -n '__sluice_at quota' -a '(__sluice_ask destinations)'

complete -c sluice -n '__sluice_at remote' -l limit -d 'at most this many rows (default: 100)' -x
complete -c sluice -n '__sluice_at remote' -l foreign -d 'only objects that no upload here is known to have created'
complete -c sluice -n '__sluice_at remote' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at remote' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at remote' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at remote' -l help -d 'print this text'
complete -c sluice -n '__sluice_at remote' -a '(__sluice_ask destinations)'

complete -c sluice -n '__sluice_at orphans' -l abort -d 'remove the listed uploads from the destination'
complete -c sluice -n '__sluice_at orphans' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at orphans' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at orphans' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at orphans' -l help -d 'print this text'
complete -c sluice -n '__sluice_at orphans' -a '(__sluice_ask destinations)'

complete -c sluice -n '__sluice_at trace' -l for -d 'how long; 10m by default, 1d at most' -x
complete -c sluice -n '__sluice_at trace' -l max -d 'how much is written at most; 20MB by default' -x
complete -c sluice -n '__sluice_at trace' -l output -d 'a new file instead of standard output (or -o FILE)' -r -F
complete -c sluice -n '__sluice_at trace' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at trace' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at trace' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at trace' -l help -d 'print this text'
complete -c sluice -n '__sluice_at trace' -a '(__sluice_ask destinations)'

complete -c sluice -n '__sluice_at metrics' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at metrics' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at metrics' -l help -d 'print this text'

complete -c sluice -n '__sluice_at events' -l since -d 'start with the first event after N' -x
complete -c sluice -n '__sluice_at events' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at events' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at events' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at events' -l help -d 'print this text'

complete -c sluice -n '__sluice_at add' -l to -d 'upload to this destination (default: the destinations of the file\'s folder; `-` needs it unless only one destination is configured)' -x -a '(__sluice_ask destinations)'
complete -c sluice -n '__sluice_at add' -l name -d 'with `-`: the name of the file (required)' -x
complete -c sluice -n '__sluice_at add' -l key -d 'your own name for it; no other ongoing upload of the destination has it' -x
complete -c sluice -n '__sluice_at add' -l context -d 'a value of your own that is stored with the upload, and shown with it' -x
complete -c sluice -n '__sluice_at add' -l header -d 'a quoted extra header for this upload\'s requests, sent to its destination\'s address only; its value is never shown' -x
complete -c sluice -n '__sluice_at add' -l url -d 'create the upload at this address instead of the destination\'s; scheme, host and port must be the same' -x
complete -c sluice -n '__sluice_at add' -l upload-url -d 'send the file to the upload that exists at this address, and create none; scheme, host and port must be those of the destination' -x
complete -c sluice -n '__sluice_at add' -l again -d 'upload files that were uploaded before, too'
complete -c sluice -n '__sluice_at add' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at add' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at add' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at add' -l help -d 'print this text'
complete -c sluice -n '__sluice_at add' -F

complete -c sluice -n '__sluice_at pause' -l all -d 'everything (default)'
complete -c sluice -n '__sluice_at pause' -l folder -d 'uploads of this folder' -x -a '(__sluice_ask folders)'
complete -c sluice -n '__sluice_at pause' -l destination -d 'uploads to this destination' -x -a '(__sluice_ask destinations)'
complete -c sluice -n '__sluice_at pause' -l for -d 'resume automatically after this time: 30m, 2h, 1d (not with ID, KEY or PATH)' -x
complete -c sluice -n '__sluice_at pause' -l after-part -d 'let the parts that are being sent finish first'
complete -c sluice -n '__sluice_at pause' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at pause' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at pause' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at pause' -l help -d 'print this text'
complete -c sluice -n '__sluice_at pause' -a '(__sluice_ask uploads ongoing)' -F

complete -c sluice -n '__sluice_at resume' -l all -d 'everything (default)'
complete -c sluice -n '__sluice_at resume' -l folder -d 'uploads of this folder' -x -a '(__sluice_ask folders)'
complete -c sluice -n '__sluice_at resume' -l destination -d 'uploads to this destination' -x -a '(__sluice_ask destinations)'
complete -c sluice -n '__sluice_at resume' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at resume' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at resume' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at resume' -l help -d 'print this text'
complete -c sluice -n '__sluice_at resume' -a '(__sluice_ask uploads ongoing)' -F

complete -c sluice -n '__sluice_at cancel' -l all -d 'all ongoing uploads'
complete -c sluice -n '__sluice_at cancel' -l folder -d 'ongoing uploads of this folder' -x -a '(__sluice_ask folders)'
complete -c sluice -n '__sluice_at cancel' -l destination -d 'ongoing uploads to this destination' -x -a '(__sluice_ask destinations)'
complete -c sluice -n '__sluice_at cancel' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at cancel' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at cancel' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at cancel' -l help -d 'print this text'
complete -c sluice -n '__sluice_at cancel' -a '(__sluice_ask uploads ongoing)' -F

complete -c sluice -n '__sluice_at retry' -l all -d 'all failed uploads'
complete -c sluice -n '__sluice_at retry' -l folder -d 'failed uploads of this folder' -x -a '(__sluice_ask folders)'
complete -c sluice -n '__sluice_at retry' -l destination -d 'failed uploads to this destination' -x -a '(__sluice_ask destinations)'
complete -c sluice -n '__sluice_at retry' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at retry' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at retry' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at retry' -l help -d 'print this text'
complete -c sluice -n '__sluice_at retry' -a '(__sluice_ask uploads failed)' -F

complete -c sluice -n '__sluice_at priority' -l set -d 'the priority: -1000 to 1000' -x
complete -c sluice -n '__sluice_at priority' -l all -d 'all ongoing uploads'
complete -c sluice -n '__sluice_at priority' -l folder -d 'ongoing uploads of this folder' -x -a '(__sluice_ask folders)'
complete -c sluice -n '__sluice_at priority' -l destination -d 'ongoing uploads to this destination' -x -a '(__sluice_ask destinations)'
complete -c sluice -n '__sluice_at priority' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at priority' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at priority' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at priority' -l help -d 'print this text'
complete -c sluice -n '__sluice_at priority' -a '(__sluice_ask uploads ongoing)' -F

complete -c sluice -n '__sluice_at remove' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at remove' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at remove' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at remove' -l help -d 'print this text'
complete -c sluice -n '__sluice_at remove' -a '(__sluice_ask uploads completed)' -F

complete -c sluice -n '__sluice_at flush' -l list -d 'only this list: completed, failed or cancelled' -x -a 'completed failed cancelled'
complete -c sluice -n '__sluice_at flush' -l folder -d 'only uploads of this folder' -x -a '(__sluice_ask folders)'
complete -c sluice -n '__sluice_at flush' -l destination -d 'only uploads to this destination' -x -a '(__sluice_ask destinations)'
complete -c sluice -n '__sluice_at flush' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at flush' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at flush' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at flush' -l help -d 'print this text'

complete -c sluice -n '__sluice_at allow' -l folder -d 'all uploads of this folder' -x -a '(__sluice_ask folders)'
complete -c sluice -n '__sluice_at allow' -l metered -d 'let them use metered networks'
complete -c sluice -n '__sluice_at allow' -l quota -d 'let them exceed quotas'
complete -c sluice -n '__sluice_at allow' -l rule -d 'let them run against this rule: under `pause`, `windows`, `metered`' -x
complete -c sluice -n '__sluice_at allow' -l rules -d 'let them run against all rules that may be excepted; metered bytes may cost money'
complete -c sluice -n '__sluice_at allow' -l window -d 'let them run outside windows'
complete -c sluice -n '__sluice_at allow' -l for -d 'how long: 30m, 2h, 1d' -x
complete -c sluice -n '__sluice_at allow' -l end -d 'end the exception now'
complete -c sluice -n '__sluice_at allow' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at allow' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at allow' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at allow' -l help -d 'print this text'
complete -c sluice -n '__sluice_at allow' -a '(__sluice_ask uploads ongoing)' -F

complete -c sluice -n '__sluice_at limit' -l for -d 'how long: 30m, 2h, 1d' -x
complete -c sluice -n '__sluice_at limit' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at limit' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at limit' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at limit' -l help -d 'print this text'
complete -c sluice -n '__sluice_at limit' -a 'off'

complete -c sluice -n '__sluice_at reload' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at reload' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at reload' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at reload' -l help -d 'print this text'

complete -c sluice -n '__sluice_at rescan' -l folder -d 'only this folder' -x -a '(__sluice_ask folders)'
complete -c sluice -n '__sluice_at rescan' -l wait -d 'wait until the scan is complete'
complete -c sluice -n '__sluice_at rescan' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at rescan' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at rescan' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at rescan' -l help -d 'print this text'

complete -c sluice -n '__sluice_at folder' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at folder' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at folder' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at folder' -l help -d 'print this text'

complete -c sluice -n '__sluice_at systemd-paths' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at systemd-paths' -l install -d 'write the drop-in instead of printing it'
complete -c sluice -n '__sluice_at systemd-paths' -l help -d 'print this text'

complete -c sluice -n '__sluice_at completions' -l config -d 'the configuration file (default: $SLUICE_CONFIG, or else a user\'s own ~/.config/sluice/sluice.yaml, or else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at completions' -l socket -d 'the daemon\'s socket (default: `control.socket` of the configuration)' -r -F
complete -c sluice -n '__sluice_at completions' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at completions' -l help -d 'print this text'
complete -c sluice -n '__sluice_at completions' -a 'bash zsh fish'

complete -c sluice -n '__sluice_at version' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at version' -l config -d 'ignored: this verb reads no configuration' -r -F
complete -c sluice -n '__sluice_at version' -l help -d 'print this text'

complete -c sluice -n '__sluice_at help' -l help -d 'print this text'
complete -c sluice -n '__sluice_at help' -a 'run init demo check destinations config report edit doctor hook rebuild receive status top web list show why plan policy usage quota remote orphans trace metrics events add pause resume cancel retry priority remove flush allow limit reload rescan folder systemd-paths completions version help'
