# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_fenced_global_optspecs
    string join \n h/help V/version
end

function __fish_fenced_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_fenced_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_fenced_using_subcommand
    set -l cmd (__fish_fenced_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c fenced -n "__fish_fenced_needs_command" -s h -l help -d 'Print help'
complete -c fenced -n "__fish_fenced_needs_command" -s V -l version -d 'Print version'
complete -c fenced -n "__fish_fenced_needs_command" -f -a "run" -d 'Run a command while holding a lock'
complete -c fenced -n "__fish_fenced_needs_command" -f -a "gate" -d 'Keep the highest token at the resource, and refuse a lower one'
complete -c fenced -n "__fish_fenced_needs_command" -f -a "publish" -d 'Put a file or a directory in its place, unless a later token was there'
complete -c fenced -n "__fish_fenced_needs_command" -f -a "check" -d 'Ask the store whether a token is still the holder\'s. Advisory: it may be lost the moment after'
complete -c fenced -n "__fish_fenced_needs_command" -f -a "snippet" -d 'Print what to put at a resource so that it checks the token, and the command line that uses it'
complete -c fenced -n "__fish_fenced_using_subcommand run" -s l -l lock -d 'What must not overlap: `billing:nightly`, `deploy/prod` (UTF-8, 1-255 bytes, no control characters)' -r
complete -c fenced -n "__fish_fenced_using_subcommand run" -s t -l ttl -d 'Lease length: how long after a crash until the next one may start; unused by `file:` [default: 30s] [env: FENCED_TTL]' -r
complete -c fenced -n "__fish_fenced_using_subcommand run" -s w -l wait -d 'Give up after this time (`forever`: never; `0`: as -n); the store has 5s for its first answer in any case [default: 1m] [env: FENCED_WAIT]' -r
complete -c fenced -n "__fish_fenced_using_subcommand run" -s E -l busy-exit -l conflict-exit-code -d 'Exit status when giving up on a held lock; 0 makes a skipped run a success [default: 75]' -r
complete -c fenced -n "__fish_fenced_using_subcommand run" -s k -l grace -l kill-after -d 'Time between the stop signal and SIGKILL; must fit inside the ttl [default: min(10s, ttl/4); 10s on `file:`] [env: FENCED_GRACE]' -r
complete -c fenced -n "__fish_fenced_using_subcommand run" -s s -l signal -d 'The stop signal [default: TERM] [env: FENCED_SIGNAL]' -r
complete -c fenced -n "__fish_fenced_using_subcommand run" -l on-exit -d 'Background processes that outlive the command: `kill` them, `wait` for them, or `leave` them (unsafe) [default: kill] [env: FENCED_ON_EXIT]' -r -f -a "kill\t''
wait\t''
leave\t''"
complete -c fenced -n "__fish_fenced_using_subcommand run" -l jitter -d 'Random delay before asking for the lock, before the waiting clock starts [default: 0] [env: FENCED_JITTER]' -r
complete -c fenced -n "__fish_fenced_using_subcommand run" -l fence -d 'Show this gate the new token before the command starts, so that the holder before is shut out; can be repeated: `file:PATH`, `etcd:KEY` in the lock\'s own cluster, `cmd:COMMAND`' -r
complete -c fenced -n "__fish_fenced_using_subcommand run" -l once -d 'Skip the run (exit 0) if one with this key has succeeded already; {date} {hour} {week} {month} become those of the start: `nightly-{date}`' -r
complete -c fenced -n "__fish_fenced_using_subcommand run" -l once-at -d 'When the key is recorded: with the release, if the command exited 0 (`success`), or before the command starts (`start`: at most once, even if it fails) [default: success]' -r -f -a "success\t''
start\t''"
complete -c fenced -n "__fish_fenced_using_subcommand run" -l once-keep -d 'How long the key is remembered [default: 30d]' -r
complete -c fenced -n "__fish_fenced_using_subcommand run" -l once-tz -d 'The time zone of the key\'s date and hour, `Europe/Berlin` [default: UTC]' -r
complete -c fenced -n "__fish_fenced_using_subcommand run" -l status-file -d 'Write one JSON line about the end of the run to this file; it is opened before the lock is asked for' -r -F
complete -c fenced -n "__fish_fenced_using_subcommand run" -l status-fd -d 'The same to an open file descriptor' -r
complete -c fenced -n "__fish_fenced_using_subcommand run" -l note -d 'Shown to whoever looks at the lock: a CI job\'s URL, a reason' -r
complete -c fenced -n "__fish_fenced_using_subcommand run" -l store -d '`etcd://HOST:2379,HOST:2379[/PREFIX]`, `etcds://…` for TLS, `etcd:` to take everything from ETCDCTL_*, `file:` or `file:///DIR` [default: file:] [env: FENCED_STORE]' -r
complete -c fenced -n "__fish_fenced_using_subcommand run" -l cacert -d 'Who signed the members\' certificates (PEM) [default: the system\'s authorities] [env: FENCED_CACERT]' -r -F
complete -c fenced -n "__fish_fenced_using_subcommand run" -l cert -d 'The client\'s own certificate (PEM), with --key [env: FENCED_CERT]' -r -F
complete -c fenced -n "__fish_fenced_using_subcommand run" -l key -d 'The private key of --cert (PEM, not encrypted) [env: FENCED_KEY_FILE]' -r -F
complete -c fenced -n "__fish_fenced_using_subcommand run" -l user -d 'A user of the etcd cluster, with --password-file or FENCED_PASSWORD [env: FENCED_USER]' -r
complete -c fenced -n "__fish_fenced_using_subcommand run" -l password-file -d 'The password, on the first line of this file [env: FENCED_PASSWORD_FILE]' -r -F
complete -c fenced -n "__fish_fenced_using_subcommand run" -s n -l no-wait -l nonblock -d 'Give up at once if the lock is held'
complete -c fenced -n "__fish_fenced_using_subcommand run" -s c -l shell -d 'COMMAND is one string for `/bin/sh -c`'
complete -c fenced -n "__fish_fenced_using_subcommand run" -s q -l quiet -d 'Say nothing on stderr'
complete -c fenced -n "__fish_fenced_using_subcommand run" -s v -l verbose -d 'Say each step on stderr'
complete -c fenced -n "__fish_fenced_using_subcommand run" -s h -l help -d 'Print help'
complete -c fenced -n "__fish_fenced_using_subcommand gate; and not __fish_seen_subcommand_from file init advance show reset" -s h -l help -d 'Print help'
complete -c fenced -n "__fish_fenced_using_subcommand gate; and not __fish_seen_subcommand_from file init advance show reset" -f -a "file" -d 'Run a command inside a gate, alone, if the token is accepted'
complete -c fenced -n "__fish_fenced_using_subcommand gate; and not __fish_seen_subcommand_from file init advance show reset" -f -a "init" -d 'Make a gate that has accepted nothing yet (77 if it is there already)'
complete -c fenced -n "__fish_fenced_using_subcommand gate; and not __fish_seen_subcommand_from file init advance show reset" -f -a "advance" -d 'Have the token accepted, or refused (77)'
complete -c fenced -n "__fish_fenced_using_subcommand gate; and not __fish_seen_subcommand_from file init advance show reset" -f -a "show" -d 'Say what the gate remembers'
complete -c fenced -n "__fish_fenced_using_subcommand gate; and not __fish_seen_subcommand_from file init advance show reset" -f -a "reset" -d 'Start afresh: forget everything, or remember this token'
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from file" -l token -d 'The token [default: FENCED_TOKEN]' -r
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from file" -l lineage -d 'What the token may be compared in [default: FENCED_LINEAGE]' -r
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from file" -s w -l wait -d 'Give up after this time while somebody else is inside (`forever`: never) [default: 1m] [env: FENCED_WAIT]' -r
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from file" -s k -l grace -l kill-after -d 'Time between the stop signal and SIGKILL [default: 10s] [env: FENCED_GRACE]' -r
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from file" -s s -l signal -d 'The stop signal [default: TERM] [env: FENCED_SIGNAL]' -r
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from file" -l init -d 'Make the gate where it is missing, for its first use'
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from file" -s c -l shell -d 'COMMAND is one string for `/bin/sh -c`'
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from file" -s v -l verbose -d 'Say each step on stderr'
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from file" -s h -l help -d 'Print help'
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from init" -l token -d 'Remember this token as accepted, with --lineage [default: none]' -r
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from init" -l lineage -d 'What the token may be compared in' -r
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from init" -l store -d '`etcd://HOST:2379,HOST:2379[/PREFIX]`, `etcds://…` for TLS, `etcd:` to take everything from ETCDCTL_*, `file:` or `file:///DIR` [default: file:] [env: FENCED_STORE]' -r
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from init" -l cacert -d 'Who signed the members\' certificates (PEM) [default: the system\'s authorities] [env: FENCED_CACERT]' -r -F
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from init" -l cert -d 'The client\'s own certificate (PEM), with --key [env: FENCED_CERT]' -r -F
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from init" -l key -d 'The private key of --cert (PEM, not encrypted) [env: FENCED_KEY_FILE]' -r -F
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from init" -l user -d 'A user of the etcd cluster, with --password-file or FENCED_PASSWORD [env: FENCED_USER]' -r
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from init" -l password-file -d 'The password, on the first line of this file [env: FENCED_PASSWORD_FILE]' -r -F
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from init" -s h -l help -d 'Print help'
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from advance" -l token -d 'The token [default: FENCED_TOKEN]' -r
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from advance" -l lineage -d 'What the token may be compared in [default: FENCED_LINEAGE]' -r
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from advance" -s w -l wait -d 'Give up after this time while somebody else is inside (`forever`: never) [default: 1m] [env: FENCED_WAIT]' -r
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from advance" -l store -d '`etcd://HOST:2379,HOST:2379[/PREFIX]`, `etcds://…` for TLS, `etcd:` to take everything from ETCDCTL_*, `file:` or `file:///DIR` [default: file:] [env: FENCED_STORE]' -r
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from advance" -l cacert -d 'Who signed the members\' certificates (PEM) [default: the system\'s authorities] [env: FENCED_CACERT]' -r -F
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from advance" -l cert -d 'The client\'s own certificate (PEM), with --key [env: FENCED_CERT]' -r -F
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from advance" -l key -d 'The private key of --cert (PEM, not encrypted) [env: FENCED_KEY_FILE]' -r -F
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from advance" -l user -d 'A user of the etcd cluster, with --password-file or FENCED_PASSWORD [env: FENCED_USER]' -r
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from advance" -l password-file -d 'The password, on the first line of this file [env: FENCED_PASSWORD_FILE]' -r -F
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from advance" -l init -d 'Make the gate where it is missing, for its first use'
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from advance" -s h -l help -d 'Print help'
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from show" -l store -d '`etcd://HOST:2379,HOST:2379[/PREFIX]`, `etcds://…` for TLS, `etcd:` to take everything from ETCDCTL_*, `file:` or `file:///DIR` [default: file:] [env: FENCED_STORE]' -r
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from show" -l cacert -d 'Who signed the members\' certificates (PEM) [default: the system\'s authorities] [env: FENCED_CACERT]' -r -F
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from show" -l cert -d 'The client\'s own certificate (PEM), with --key [env: FENCED_CERT]' -r -F
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from show" -l key -d 'The private key of --cert (PEM, not encrypted) [env: FENCED_KEY_FILE]' -r -F
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from show" -l user -d 'A user of the etcd cluster, with --password-file or FENCED_PASSWORD [env: FENCED_USER]' -r
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from show" -l password-file -d 'The password, on the first line of this file [env: FENCED_PASSWORD_FILE]' -r -F
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from show" -l json -d 'As one JSON object'
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from reset" -l token -d 'Remember this token as accepted, with --lineage [default: none]' -r
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from reset" -l lineage -d 'What the token may be compared in' -r
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from reset" -l store -d '`etcd://HOST:2379,HOST:2379[/PREFIX]`, `etcds://…` for TLS, `etcd:` to take everything from ETCDCTL_*, `file:` or `file:///DIR` [default: file:] [env: FENCED_STORE]' -r
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from reset" -l cacert -d 'Who signed the members\' certificates (PEM) [default: the system\'s authorities] [env: FENCED_CACERT]' -r -F
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from reset" -l cert -d 'The client\'s own certificate (PEM), with --key [env: FENCED_CERT]' -r -F
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from reset" -l key -d 'The private key of --cert (PEM, not encrypted) [env: FENCED_KEY_FILE]' -r -F
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from reset" -l user -d 'A user of the etcd cluster, with --password-file or FENCED_PASSWORD [env: FENCED_USER]' -r
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from reset" -l password-file -d 'The password, on the first line of this file [env: FENCED_PASSWORD_FILE]' -r -F
complete -c fenced -n "__fish_fenced_using_subcommand gate; and __fish_seen_subcommand_from reset" -s h -l help -d 'Print help'
complete -c fenced -n "__fish_fenced_using_subcommand publish" -l gate -d 'The gate\'s file [default: .DEST.fence beside DEST]' -r -F
complete -c fenced -n "__fish_fenced_using_subcommand publish" -l token -d 'The token [default: FENCED_TOKEN]' -r
complete -c fenced -n "__fish_fenced_using_subcommand publish" -l lineage -d 'What the token may be compared in [default: FENCED_LINEAGE]' -r
complete -c fenced -n "__fish_fenced_using_subcommand publish" -s w -l wait -d 'Give up after this time while somebody else is inside (`forever`: never) [default: 1m] [env: FENCED_WAIT]' -r
complete -c fenced -n "__fish_fenced_using_subcommand publish" -l init -d 'Make the gate where it is missing, for its first use'
complete -c fenced -n "__fish_fenced_using_subcommand publish" -s h -l help -d 'Print help'
complete -c fenced -n "__fish_fenced_using_subcommand check" -s l -l lock -d 'The lock [default: FENCED_LOCK]' -r
complete -c fenced -n "__fish_fenced_using_subcommand check" -l token -d 'The token [default: FENCED_TOKEN]' -r
complete -c fenced -n "__fish_fenced_using_subcommand check" -l lineage -d 'What the token may be compared in [default: FENCED_LINEAGE, where the token is FENCED_TOKEN]' -r
complete -c fenced -n "__fish_fenced_using_subcommand check" -l store -d '`etcd://HOST:2379,HOST:2379[/PREFIX]`, `etcds://…` for TLS, `etcd:` to take everything from ETCDCTL_*, `file:` or `file:///DIR` [default: file:] [env: FENCED_STORE]' -r
complete -c fenced -n "__fish_fenced_using_subcommand check" -l cacert -d 'Who signed the members\' certificates (PEM) [default: the system\'s authorities] [env: FENCED_CACERT]' -r -F
complete -c fenced -n "__fish_fenced_using_subcommand check" -l cert -d 'The client\'s own certificate (PEM), with --key [env: FENCED_CERT]' -r -F
complete -c fenced -n "__fish_fenced_using_subcommand check" -l key -d 'The private key of --cert (PEM, not encrypted) [env: FENCED_KEY_FILE]' -r -F
complete -c fenced -n "__fish_fenced_using_subcommand check" -l user -d 'A user of the etcd cluster, with --password-file or FENCED_PASSWORD [env: FENCED_USER]' -r
complete -c fenced -n "__fish_fenced_using_subcommand check" -l password-file -d 'The password, on the first line of this file [env: FENCED_PASSWORD_FILE]' -r -F
complete -c fenced -n "__fish_fenced_using_subcommand check" -s v -l verbose -d 'Say on stderr what was found'
complete -c fenced -n "__fish_fenced_using_subcommand check" -s h -l help -d 'Print help'
complete -c fenced -n "__fish_fenced_using_subcommand snippet" -s h -l help -d 'Print help'
