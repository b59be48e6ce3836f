# python and python3: outside of an environment the image's own, except for the two modules that the front stands for.
. /opt/evaluator/front/lib/front.sh
. /opt/evaluator/front/lib/pip.sh
[ -z "$VERIFIER_FRONT_ENVIRONMENT" ] || exec "$VERIFIER_FRONT_ENVIRONMENT/bin/python3" "$@"
python=$(image_python) || exit 97
if [ "${1-}" = -m ]; then
  case ${2-} in
    pip)
      shift 2
      pip_main "$python" "$@"
      ;;
    pytest)
      shift 2
      want_installed
      want_default pytest
      want_default pytest-json-ctrf
      run_pytest image-module "$@"
      ;;
  esac
fi
exec "$python" "$@"
