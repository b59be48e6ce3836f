# Which addresses the front lets through: those of the container itself, where a task's services listen.

# is_local URL: true for file: and for this machine's own names.
is_local() {
  case $1 in
    file:*) return 0 ;;
  esac
  host=${1#*://}
  host=${host%%[/?#]*}
  host=${host##*@}
  case $host in
    '[::1]' | '[::1]':*) return 0 ;;
  esac
  host=${host%%:*}
  case $host in
    127.*) case $host in *[!0-9.]*) return 1 ;; esac ;;
    localhost | 0.0.0.0 | "$(hostname)") ;;
    *) return 1 ;;
  esac
}

# looks_like_url WORD
looks_like_url() {
  case $1 in
    http://* | https://* | ftp://* | file:* | localhost | localhost[:/]* | 127.*) ;;
    *) return 1 ;;
  esac
}
