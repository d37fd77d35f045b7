# Sourced by scripts/test, scripts/check and .ci/run: their stages, the count of what passed, and how
# a preset is built and its tests are run.
# CMAKE_BUILD_PARALLEL_LEVEL  number of jobs; default: the processors of this machine
# shellcheck shell=bash
set -uo pipefail
declare -F stage >/dev/null && return
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
root=$PWD
release=$root/build/ci

export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_CUDA_COMPILER_LAUNCHER=ccache
  export CCACHE_SLOPPINESS=pch_defines,time_macros        # or it does not know precompiled headers
  export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 # the same units lie in several build folders
  export CCACHE_DEPEND=1                         # or it preprocesses every unit once more
fi
architectures=() # the preset's, which no GPU has to run
command -v nvidia-smi >/dev/null && architectures=(-DCMAKE_CUDA_ARCHITECTURES=native)
# The thread sanitizer needs addresses where it expects them, and many kernels spread them wider.
fixed_addresses=()
setarch -R true 2>/dev/null && fixed_addresses=(setarch -R)
linker=() # GNU's takes seconds for every test
command -v ld.lld >/dev/null && linker=(-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld)
[ -d /usr/local/cuda/bin ] && export PATH=$PATH:/usr/local/cuda/bin

passed=0
failed=0
failures=()

# script <argument...>: what scripts/test and scripts/check do with their arguments.
script() {
  case "${1:-}" in
    "") ;;
    --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" && exit ;;
    *) echo "usage: $0 [--help]" >&2 && exit 2 ;;
  esac
}

# stage <name> <command...>: runs the command under a header and reports its time. A stage is one
# check, unless the command sets `tests_passed` and `tests_failed`; none if it was skipped.
stage() {
  local name=$1 start=$SECONDS verdict=ok
  shift
  tests_passed=1 tests_failed=0
  printf '\n== %s\n' "$name"
  if ! "$@"; then
    verdict=FAILED
    [ "$tests_failed" -gt 0 ] || tests_passed=0 tests_failed=1
    failures+=("$name")
  fi
  [ $((tests_passed + tests_failed)) -gt 0 ] || verdict=skipped
  passed=$((passed + tests_passed))
  failed=$((failed + tests_failed))
  printf '== %s: %s, %d s\n' "$name" "$verdict" $((SECONDS - start))
  [ "$verdict" != FAILED ]
}

# Ends the program with the names of the stages that failed and the line `N passed, N failed`.
finish() {
  printf '\n'
  [ ${#failures[@]} -eq 0 ] || printf 'failed stage: %s\n' "${failures[@]}"
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
  exit
}

# quietly <log> <command...>: keeps the output in a file and shows it only if the command fails;
# on a terminal it is shown as it comes.
quietly() {
  local log=$1
  shift
  if [ -t 1 ]; then
    "$@"
    return
  fi
  mkdir -p "$(dirname "$log")"
  "$@" >"$log" 2>&1 || { cat "$log" && return 1; }
}

compile() { # <preset> [targets]
  local preset=$1
  shift
  quietly "build/$preset.configure.log" cmake --preset "$preset" "${linker[@]}" \
    "${architectures[@]}" &&
    quietly "build/$preset.build.log" "${fixed_addresses[@]}" \
      cmake --build --preset "$preset" ${1:+--target "$@"}
}

# run_tests <preset> <filter of GoogleTest> [ctest arguments]
# Some tests wait for time limits and other processes, so one more runs than there are processors.
run_tests() {
  local folder=$root/build/$1 filter=$2 status=0
  shift 2
  rm -rf "$folder/tests.xml" "$folder/cases"
  mkdir "$folder/cases"
  GTEST_FILTER=$filter GTEST_BRIEF=1 "${fixed_addresses[@]}" ctest --test-dir "$folder" "$@" \
    --output-junit "$folder/tests.xml" --parallel $((CMAKE_BUILD_PARALLEL_LEVEL + 1)) \
    --output-on-failure >"$folder/tests.log" 2>&1 || status=1
  [ $status -eq 0 ] || grep -avE '^ *(Start|[0-9]+/[0-9]+ .* Passed )' "$folder/tests.log"
  count_cases "$folder"
  return $status
}

# Prints which tests failed, and sets tests_passed and tests_failed. An entry of ctest is as many tests
# as tests/support/main.cpp recorded cases of it, or one. Behind a case that ended its program, others
# did not run; of an entry that failed, but none of its cases, one is counted as failed.
count_cases() { # <build folder>
  local lines skipped
  lines=$(awk -v records="$1/cases" '
    function attribute(name) {
      match($0, " " name "=\"[^\"]*\"")
      return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 4)
    }
    function fail(why) { print "failed: " entry why; failures++; counted["failed"]++ }
    /<testcase / {
      entry = attribute("name"); status = attribute("status")
      file = records "/" entry; running = ""; failures = 0
      read = (getline line < file)
      is_program = read >= 0
      for (; read > 0; read = (getline line < file)) {
        split(line, word, " ")
        running = word[1] == "started" ? word[2] : ""
        if (word[1] == "failed") fail(" " word[2])
        else counted[word[1]]++
      }
      close(file)
      if (running != "") fail(" " running " did not end")
      else if (status == "fail" && failures == 0) fail("")
      else if (status == "run" && !is_program) counted["passed"]++
      else if (status == "notrun") counted["skipped"]++
    }
    END { printf "%d %d %d\n", counted["passed"], counted["failed"], counted["skipped"] }' \
    "$1/tests.xml") || return 1
  sed '$d' <<<"$lines"
  read -r tests_passed tests_failed skipped <<<"${lines##*$'\n'}"
  echo "$tests_passed passed, $tests_failed failed, $skipped skipped"
}

# More reference data than the repository has may lie beside the checkout, packed.
unpack_golden() {
  local archive unpacked into=$release/golden
  mkdir -p "$into"
  for archive in "$root"/../shared/golden*.tar.xz; do
    [ -f "$archive" ] || continue
    unpacked=$into/.$(basename "$archive")
    [ "$archive" -nt "$unpacked" ] || continue
    tar xJf "$archive" -C "$release" && touch "$unpacked" || return 1
  done
  export FOVEA_GOLDEN_DIR=$release/golden
}
