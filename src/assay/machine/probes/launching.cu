// What a launch itself costs: a kernel that does nothing. And one that holds the stream back until the host has queued its work.

__global__ void nothing() {}

__global__ void hold(long long ns) {
    const long long start = nanoseconds();
    while (nanoseconds() - start < ns) {}
}
