# apt and apt-get: yes to what is there already or what the tools volume can stand for, a named refusal for the rest.
. /opt/evaluator/front/lib/front.sh

# is_installed PACKAGE: by the image's own package database.
is_installed() {
  awk -v name="$1" '
    /^Package: / { current = $2 }
    /^Status: / && current == name && $4 == "installed" { found = 1; exit }
    END { exit !found }
  ' /var/lib/dpkg/status 2>/dev/null
}

# install_package NAME: its commands go where every shell finds them, a login shell's fresh PATH included. A program of
# the volume takes the place of the image's, which may be the agent's.
install_package() {
  line=$(awk -v name="$1" '$1 == name { print; exit }' "$FRONT/lib/apt-packages.txt")
  for word in ${line#"$1"}; do
    case $word in
      '['*) ;;
      *=*) is_installed "$1" || link "/usr/local/bin/${word%%=*}" "/opt/evaluator/busybox ${word#*=}" ;;
      *)
        if [ -f "$FRONT/$word" ]; then
          link "/usr/bin/$word" "$FRONT/$word"
        else
          is_installed "$1" || link "/usr/bin/$word" "$FRONT/installed/$word"
        fi
        ;;
    esac
  done
  [ -n "$line" ] || is_installed "$1" || refuse front_unserved_apt "$1"
}

# link PLACE COMMAND: a script, as the image's programs have another loader.
link() {
  mkdir -p "${1%/*}"
  rm -rf "$1"
  printf '#!/opt/evaluator/busybox sh\nexec %s "$@"\n' "$2" >"$1"
  chmod 755 "$1"
}

action=
while [ $# -gt 0 ]; do
  case $1 in
    -o | -t | -c | --option | --target-release | --config-file) shift ;;
    -*) ;;
    *)
      if [ "$action" = install ]; then
        install_package "${1%%[=:/]*}"
      elif [ -z "$action" ]; then
        action=$1
        case $action in
          update | upgrade | dist-upgrade | install | clean | autoclean | autoremove) ;;
          *) refuse front_unserved_command "${0##*/} $action" ;;
        esac
      fi
      ;;
  esac
  [ $# -eq 0 ] || shift
done
exit 0
