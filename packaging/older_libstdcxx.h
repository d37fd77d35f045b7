// The first thing that the sources of a wheel include (scripts/wheel). GCC 12 gave this function a
// new version, of which the libstdc++ of GCC 11 knows nothing: that of Red Hat Enterprise Linux 9,
// its relatives and Amazon Linux 2023. The old one is the same but for threads that are cancelled,
// of which there are none.
__asm__(
    ".symver _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE,"
    "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE@GLIBCXX_3.4.11");
