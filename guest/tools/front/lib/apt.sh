# apt and apt-get: yes to what is there already, a named refusal for the rest.
. /opt/evaluator/front/lib/front.sh

is_served() {
  grep -qxF "$1" "$FRONT/lib/apt-packages.txt" && return 0
  awk -v name="$1" '
    /^Package: / { current = $2 }
    /^Status: / && current == name && $4 == "installed" { found = 1; exit }
    END { exit !found }
  ' /var/lib/dpkg/status 2>/dev/null
}

action=
while [ $# -gt 0 ]; do
  case $1 in
    -o | -t | -c | --option | --target-release) shift ;;
    -*) ;;
    *)
      if [ -z "$action" ]; then
        action=$1
        case $action in
          update | upgrade | dist-upgrade | install | clean | autoclean | autoremove) ;;
          *) refuse front_unserved_command "${0##*/} $action" ;;
        esac
      elif [ "$action" = install ]; then
        package=${1%%[=:/]*}
        is_served "$package" || refuse front_unserved_apt "$package"
      fi
      ;;
  esac
  [ $# -eq 0 ] || shift
done
exit 0
