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
complete -c sluice -n '__sluice_at' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at' -l socket -d 'the daemon\'s socket (else the one that the configuration names)' -r -F
complete -c sluice -n '__sluice_at' -l help -d 'print this text'
complete -c sluice -n '__sluice_at' -l version -d 'the version of this program'
complete -c sluice -n '__sluice_at' -a run -d 'run the daemon, in the foreground'
complete -c sluice -n '__sluice_at' -a check -d 'test the configuration and everything that it names'
complete -c sluice -n '__sluice_at' -a destinations -d 'list the kinds of destination, their presets and their keys'
complete -c sluice -n '__sluice_at' -a config -d 'print the effective configuration, and where each setting comes from'
complete -c sluice -n '__sluice_at' -a doctor -d 'find out what prevents Sluice from working well on this machine'
complete -c sluice -n '__sluice_at' -a hook -d 'send a test event to a hook, and print the result'
complete -c sluice -n '__sluice_at' -a rebuild -d 'build a new database when the old one is damaged or lost'
complete -c sluice -n '__sluice_at' -a receive -d 'receive uploads: a tus server that stores files in a folder'
complete -c sluice -n '__sluice_at' -a status -d 'show what the daemon does, and why uploads wait'
complete -c sluice -n '__sluice_at' -a list -d 'show uploads, newest first'
complete -c sluice -n '__sluice_at' -a show -d 'show everything about one upload'
complete -c sluice -n '__sluice_at' -a why -d 'explain why an upload waits, or why a file is not uploaded'
complete -c sluice -n '__sluice_at' -a plan -d 'forecast when uploads run, and which will not finish in time'
complete -c sluice -n '__sluice_at' -a usage -d 'show how much was sent and received, and what is left of each quota'
complete -c sluice -n '__sluice_at' -a quota -d 'show how much may still be sent to a destination'
complete -c sluice -n '__sluice_at' -a remote -d 'list the objects at a destination, and which of them are ours'
complete -c sluice -n '__sluice_at' -a orphans -d 'list or remove abandoned uploads at a destination'
complete -c sluice -n '__sluice_at' -a metrics -d 'print metrics in the text format of Prometheus'
complete -c sluice -n '__sluice_at' -a events -d 'follow events, one on each line'
complete -c sluice -n '__sluice_at' -a add -d 'upload files, folders or standard input by hand'
complete -c sluice -n '__sluice_at' -a pause -d 'hold uploads until you resume them'
complete -c sluice -n '__sluice_at' -a resume -d 'release uploads that you paused'
complete -c sluice -n '__sluice_at' -a cancel -d 'cancel uploads, and remove their unfinished data from the destination'
complete -c sluice -n '__sluice_at' -a retry -d 'retry failed or cancelled uploads; for a folder, a destination or --all: only failed ones'
complete -c sluice -n '__sluice_at' -a remove -d 'remove finished uploads from their list'
complete -c sluice -n '__sluice_at' -a flush -d 'clear the lists of finished uploads'
complete -c sluice -n '__sluice_at' -a allow -d 'exempt uploads from policy rules for a while'
complete -c sluice -n '__sluice_at' -a limit -d 'limit all transfers together for a while'
complete -c sluice -n '__sluice_at' -a reload -d 'make the daemon read its configuration again'
complete -c sluice -n '__sluice_at' -a rescan -d 'scan folders now'
complete -c sluice -n '__sluice_at' -a folder -d 'accept the directory that is now at a folder\'s path'
complete -c sluice -n '__sluice_at' -a completions -d 'print the completion script of a shell'
complete -c sluice -n '__sluice_at' -a version -d 'show the version of this program'
complete -c sluice -n '__sluice_at' -a help -d 'list the verbs, or explain one'

complete -c sluice -n '__sluice_at run' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at run' -l log-level -d 'error, warning, notice, info (default) or debug' -x -a 'error warning notice info debug'
complete -c sluice -n '__sluice_at run' -l log-format -d 'text (default) or json' -x -a 'text json'
complete -c sluice -n '__sluice_at run' -l once -d 'exit when no remaining upload may run'
complete -c sluice -n '__sluice_at run' -l wait -d 'with --once: wait this long for uploads that may run by then; 0s by default' -x
complete -c sluice -n '__sluice_at run' -l json -d 'with --once: print what is left as one JSON object'
complete -c sluice -n '__sluice_at run' -l help -d 'print this text'

complete -c sluice -n '__sluice_at check' -l running -d 'let the running daemon check its loaded configuration'
complete -c sluice -n '__sluice_at check' -l folder -d 'only this folder (with --running)' -x -a '(__sluice_ask folders)'
complete -c sluice -n '__sluice_at check' -l destination -d 'only this destination (with --running)' -x -a '(__sluice_ask destinations)'
complete -c sluice -n '__sluice_at check' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at check' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at check' -l socket -d 'the daemon\'s socket (else the one that the configuration names)' -r -F
complete -c sluice -n '__sluice_at check' -l help -d 'print this text'

complete -c sluice -n '__sluice_at destinations' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at destinations' -l help -d 'print this text'
complete -c sluice -n '__sluice_at destinations' -a 'tus directory chunked-form vimeo s3 oss apsara-vod'

complete -c sluice -n '__sluice_at config' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at config' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at config' -l help -d 'print this text'

complete -c sluice -n '__sluice_at doctor' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at doctor' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at doctor' -l help -d 'print this text'

complete -c sluice -n '__sluice_at hook' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at hook' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at hook' -l socket -d 'the daemon\'s socket (else the one that the configuration names)' -r -F
complete -c sluice -n '__sluice_at hook' -l help -d 'print this text'

complete -c sluice -n '__sluice_at rebuild' -l dry-run -d 'show what it would do, and change nothing'
complete -c sluice -n '__sluice_at rebuild' -l yes -d 'do not ask for confirmation'
complete -c sluice -n '__sluice_at rebuild' -l unknown -d 'files that no destination can confirm: hold (default), send or assume-sent' -x -a 'hold send assume-sent'
complete -c sluice -n '__sluice_at rebuild' -l offline -d 'ask no destination'
complete -c sluice -n '__sluice_at rebuild' -l force -d 'even if the database is intact, or a folder is absent'
complete -c sluice -n '__sluice_at rebuild' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at rebuild' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at rebuild' -l help -d 'print this text'

complete -c sluice -n '__sluice_at receive' -l into -d 'where files appear (required); created if it is missing' -x -a '(__fish_complete_directories)'
complete -c sluice -n '__sluice_at receive' -l listen -d 'HOST:PORT or :PORT (127.0.0.1:1080); port 0 lets the system choose' -x
complete -c sluice -n '__sluice_at receive' -l token-file -d 'accept only senders with the token in this file (Authorization: Bearer)' -r -F
complete -c sluice -n '__sluice_at receive' -l trusted-proxy -d 'trust X-Forwarded-For from this proxy or network: 127.0.0.1, 10.0.0.0/8' -x
complete -c sluice -n '__sluice_at receive' -l max-size -d 'refuse larger files: 20 GB, 500 MiB' -x
complete -c sluice -n '__sluice_at receive' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at receive' -l log-level -d 'error, warning, notice, info (default) or debug' -x -a 'error warning notice info debug'
complete -c sluice -n '__sluice_at receive' -l log-format -d 'text (default) or json' -x -a 'text json'
complete -c sluice -n '__sluice_at receive' -l help -d 'print this text'

complete -c sluice -n '__sluice_at status' -l follow -d 'redraw it every second'
complete -c sluice -n '__sluice_at status' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at status' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at status' -l socket -d 'the daemon\'s socket (else the one that the configuration names)' -r -F
complete -c sluice -n '__sluice_at status' -l help -d 'print this text'

complete -c sluice -n '__sluice_at list' -l list -d 'only ongoing, completed, failed or cancelled ones, or the history of uploads that left these lists' -x -a 'ongoing completed failed cancelled history'
complete -c sluice -n '__sluice_at list' -l state -d 'only this state: settling, staging, queued, waiting, opening, uploading, finishing …' -x -a 'cancelled completed expired failed finishing opening paused queued settling staging uploading waiting'
complete -c sluice -n '__sluice_at list' -l destination -d 'only uploads to this destination' -x -a '(__sluice_ask destinations)'
complete -c sluice -n '__sluice_at list' -l folder -d 'only files of this folder' -x -a '(__sluice_ask folders)'
complete -c sluice -n '__sluice_at list' -l text -d 'only paths that contain it' -x
complete -c sluice -n '__sluice_at list' -l context -d 'only uploads with this context' -x
complete -c sluice -n '__sluice_at list' -l since -d 'only uploads added since: 18:00, 2026-11-20, 2026-11-20T18:00 or 2d' -x
complete -c sluice -n '__sluice_at list' -l until -d 'only uploads added before' -x
complete -c sluice -n '__sluice_at list' -l limit -d 'at most this many rows, newest first (100; up to 1000)' -x
complete -c sluice -n '__sluice_at list' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at list' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at list' -l socket -d 'the daemon\'s socket (else the one that the configuration names)' -r -F
complete -c sluice -n '__sluice_at list' -l help -d 'print this text'

complete -c sluice -n '__sluice_at show' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at show' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at show' -l socket -d 'the daemon\'s socket (else the one that the configuration names)' -r -F
complete -c sluice -n '__sluice_at show' -l help -d 'print this text'
complete -c sluice -n '__sluice_at show' -a '(__sluice_ask uploads)' -F

complete -c sluice -n '__sluice_at why' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at why' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at why' -l socket -d 'the daemon\'s socket (else the one that the configuration names)' -r -F
complete -c sluice -n '__sluice_at why' -l help -d 'print this text'
complete -c sluice -n '__sluice_at why' -a '(__sluice_ask uploads)' -F

complete -c sluice -n '__sluice_at plan' -l until -d 'end: 18:00, 2026-11-25, 2026-11-25T18:00 or 2d (default: all is sent, or a month)' -x
complete -c sluice -n '__sluice_at plan' -l rate -d 'assume this rate, like 2 MB/s' -x
complete -c sluice -n '__sluice_at plan' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at plan' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at plan' -l socket -d 'the daemon\'s socket (else the one that the configuration names)' -r -F
complete -c sluice -n '__sluice_at plan' -l help -d 'print this text'

complete -c sluice -n '__sluice_at usage' -l days -d 'the last N days (7)' -x
complete -c sluice -n '__sluice_at usage' -l months -d 'the last N months (3)' -x
complete -c sluice -n '__sluice_at usage' -l by -d 'grouped by destination, folder or network' -x -a 'destination folder network'
complete -c sluice -n '__sluice_at usage' -l destination -d 'only bytes to this destination' -x -a '(__sluice_ask destinations)'
complete -c sluice -n '__sluice_at usage' -l folder -d 'only bytes of this folder' -x -a '(__sluice_ask folders)'
complete -c sluice -n '__sluice_at usage' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at usage' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at usage' -l socket -d 'the daemon\'s socket (else the one that the configuration names)' -r -F
complete -c sluice -n '__sluice_at usage' -l help -d 'print this text'

complete -c sluice -n '__sluice_at quota' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at quota' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at quota' -l socket -d 'the daemon\'s socket (else the one that the configuration names)' -r -F
complete -c sluice -n '__sluice_at quota' -l help -d 'print this text'
complete -c sluice -n '__sluice_at quota' -a '(__sluice_ask destinations)'

complete -c sluice -n '__sluice_at remote' -l limit -d 'at most this many rows (100)' -x
complete -c sluice -n '__sluice_at remote' -l foreign -d 'only objects that are not ours'
complete -c sluice -n '__sluice_at remote' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at remote' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at remote' -l socket -d 'the daemon\'s socket (else the one that the configuration names)' -r -F
complete -c sluice -n '__sluice_at remote' -l help -d 'print this text'
complete -c sluice -n '__sluice_at remote' -a '(__sluice_ask destinations)'

complete -c sluice -n '__sluice_at orphans' -l abort -d 'remove them there'
complete -c sluice -n '__sluice_at orphans' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at orphans' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at orphans' -l socket -d 'the daemon\'s socket (else the one that the configuration names)' -r -F
complete -c sluice -n '__sluice_at orphans' -l help -d 'print this text'
complete -c sluice -n '__sluice_at orphans' -a '(__sluice_ask destinations)'

complete -c sluice -n '__sluice_at metrics' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at metrics' -l socket -d 'the daemon\'s socket (else the one that the configuration names)' -r -F
complete -c sluice -n '__sluice_at metrics' -l help -d 'print this text'

complete -c sluice -n '__sluice_at events' -l since -d 'start with the first event after N' -x
complete -c sluice -n '__sluice_at events' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at events' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at events' -l socket -d 'the daemon\'s socket (else the one that the configuration names)' -r -F
complete -c sluice -n '__sluice_at events' -l help -d 'print this text'

complete -c sluice -n '__sluice_at add' -l to -d 'a destination; without it, those of the folder that the file is in, and for `-` the only one that there is' -x -a '(__sluice_ask destinations)'
complete -c sluice -n '__sluice_at add' -l name -d 'the file name for standard input; with `-`' -x
complete -c sluice -n '__sluice_at add' -l key -d 'your own name for the upload; only one ongoing upload may have it' -x
complete -c sluice -n '__sluice_at add' -l context -d 'stored with the upload and shown with it' -x
complete -c sluice -n '__sluice_at add' -l header -d 'an extra header of this upload\'s requests, sent to its destination\'s address only; its value is never shown' -x
complete -c sluice -n '__sluice_at add' -l url -d 'where to create the upload, in place of the destination\'s own address and of the same scheme, host and port' -x
complete -c sluice -n '__sluice_at add' -l again -d 'even if it was uploaded before'
complete -c sluice -n '__sluice_at add' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at add' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at add' -l socket -d 'the daemon\'s socket (else the one that the configuration names)' -r -F
complete -c sluice -n '__sluice_at add' -l help -d 'print this text'
complete -c sluice -n '__sluice_at add' -F

complete -c sluice -n '__sluice_at pause' -l all -d 'all of them'
complete -c sluice -n '__sluice_at pause' -l folder -d 'uploads of this folder' -x -a '(__sluice_ask folders)'
complete -c sluice -n '__sluice_at pause' -l destination -d 'uploads to this destination' -x -a '(__sluice_ask destinations)'
complete -c sluice -n '__sluice_at pause' -l for -d 'resume automatically after 30m, 2h, 1d …' -x
complete -c sluice -n '__sluice_at pause' -l after-part -d 'let the parts that are being sent finish first'
complete -c sluice -n '__sluice_at pause' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at pause' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at pause' -l socket -d 'the daemon\'s socket (else the one that the configuration names)' -r -F
complete -c sluice -n '__sluice_at pause' -l help -d 'print this text'
complete -c sluice -n '__sluice_at pause' -a '(__sluice_ask uploads ongoing)' -F

complete -c sluice -n '__sluice_at resume' -l all -d 'all of them'
complete -c sluice -n '__sluice_at resume' -l folder -d 'uploads of this folder' -x -a '(__sluice_ask folders)'
complete -c sluice -n '__sluice_at resume' -l destination -d 'uploads to this destination' -x -a '(__sluice_ask destinations)'
complete -c sluice -n '__sluice_at resume' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at resume' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at resume' -l socket -d 'the daemon\'s socket (else the one that the configuration names)' -r -F
complete -c sluice -n '__sluice_at resume' -l help -d 'print this text'
complete -c sluice -n '__sluice_at resume' -a '(__sluice_ask uploads ongoing)' -F

complete -c sluice -n '__sluice_at cancel' -l all -d 'all of them'
complete -c sluice -n '__sluice_at cancel' -l folder -d 'uploads of this folder' -x -a '(__sluice_ask folders)'
complete -c sluice -n '__sluice_at cancel' -l destination -d 'uploads to this destination' -x -a '(__sluice_ask destinations)'
complete -c sluice -n '__sluice_at cancel' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at cancel' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at cancel' -l socket -d 'the daemon\'s socket (else the one that the configuration names)' -r -F
complete -c sluice -n '__sluice_at cancel' -l help -d 'print this text'
complete -c sluice -n '__sluice_at cancel' -a '(__sluice_ask uploads ongoing)' -F

complete -c sluice -n '__sluice_at retry' -l all -d 'all of them'
complete -c sluice -n '__sluice_at retry' -l folder -d 'uploads of this folder' -x -a '(__sluice_ask folders)'
complete -c sluice -n '__sluice_at retry' -l destination -d 'uploads to this destination' -x -a '(__sluice_ask destinations)'
complete -c sluice -n '__sluice_at retry' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at retry' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at retry' -l socket -d 'the daemon\'s socket (else the one that the configuration names)' -r -F
complete -c sluice -n '__sluice_at retry' -l help -d 'print this text'
complete -c sluice -n '__sluice_at retry' -a '(__sluice_ask uploads failed)' -F

complete -c sluice -n '__sluice_at remove' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at remove' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at remove' -l socket -d 'the daemon\'s socket (else the one that the configuration names)' -r -F
complete -c sluice -n '__sluice_at remove' -l help -d 'print this text'
complete -c sluice -n '__sluice_at remove' -a '(__sluice_ask uploads completed)' -F

complete -c sluice -n '__sluice_at flush' -l list -d 'only completed, failed or cancelled ones' -x -a 'completed failed cancelled'
complete -c sluice -n '__sluice_at flush' -l folder -d 'uploads of this folder' -x -a '(__sluice_ask folders)'
complete -c sluice -n '__sluice_at flush' -l destination -d 'uploads to this destination' -x -a '(__sluice_ask destinations)'
complete -c sluice -n '__sluice_at flush' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at flush' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at flush' -l socket -d 'the daemon\'s socket (else the one that the configuration names)' -r -F
complete -c sluice -n '__sluice_at flush' -l help -d 'print this text'

complete -c sluice -n '__sluice_at allow' -l folder -d 'all uploads of this folder' -x -a '(__sluice_ask folders)'
complete -c sluice -n '__sluice_at allow' -l metered -d 'over metered networks'
complete -c sluice -n '__sluice_at allow' -l quota -d 'beyond its quotas'
complete -c sluice -n '__sluice_at allow' -l window -d 'outside its windows'
complete -c sluice -n '__sluice_at allow' -l for -d 'for 30m, 2h, 1d …' -x
complete -c sluice -n '__sluice_at allow' -l end -d 'end the exemption'
complete -c sluice -n '__sluice_at allow' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at allow' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at allow' -l socket -d 'the daemon\'s socket (else the one that the configuration names)' -r -F
complete -c sluice -n '__sluice_at allow' -l help -d 'print this text'
complete -c sluice -n '__sluice_at allow' -a '(__sluice_ask uploads ongoing)' -F

complete -c sluice -n '__sluice_at limit' -l for -d 'for 30m, 2h, 1d …' -x
complete -c sluice -n '__sluice_at limit' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at limit' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at limit' -l socket -d 'the daemon\'s socket (else the one that the configuration names)' -r -F
complete -c sluice -n '__sluice_at limit' -l help -d 'print this text'
complete -c sluice -n '__sluice_at limit' -a 'off'

complete -c sluice -n '__sluice_at reload' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at reload' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at reload' -l socket -d 'the daemon\'s socket (else the one that the configuration names)' -r -F
complete -c sluice -n '__sluice_at reload' -l help -d 'print this text'

complete -c sluice -n '__sluice_at rescan' -l folder -d 'only this folder' -x -a '(__sluice_ask folders)'
complete -c sluice -n '__sluice_at rescan' -l wait -d 'wait until the scan is complete'
complete -c sluice -n '__sluice_at rescan' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at rescan' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at rescan' -l socket -d 'the daemon\'s socket (else the one that the configuration names)' -r -F
complete -c sluice -n '__sluice_at rescan' -l help -d 'print this text'

complete -c sluice -n '__sluice_at folder' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at folder' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at folder' -l socket -d 'the daemon\'s socket (else the one that the configuration names)' -r -F
complete -c sluice -n '__sluice_at folder' -l help -d 'print this text'

complete -c sluice -n '__sluice_at completions' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at completions' -l socket -d 'the daemon\'s socket (else the one that the configuration names)' -r -F
complete -c sluice -n '__sluice_at completions' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at completions' -l help -d 'print this text'
complete -c sluice -n '__sluice_at completions' -a 'bash zsh fish'

complete -c sluice -n '__sluice_at version' -l json -d 'print one JSON object (or one on each line), for programs'
complete -c sluice -n '__sluice_at version' -l config -d 'the configuration (else $SLUICE_CONFIG, else /etc/sluice/sluice.yaml)' -r -F
complete -c sluice -n '__sluice_at version' -l help -d 'print this text'

complete -c sluice -n '__sluice_at help' -l help -d 'print this text'
complete -c sluice -n '__sluice_at help' -a 'run check destinations config doctor hook rebuild receive status list show why plan usage quota remote orphans metrics events add pause resume cancel retry remove flush allow limit reload rescan folder completions version help'
