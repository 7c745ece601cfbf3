/* Memory that a file keeps. The file has no name, so nothing of it stays whatever ends the process. */
#include "base/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

static int has_room(int fd, size_t size_bytes)
{
    struct statvfs info;
    return fstatvfs(fd, &info) == 0 && (uint64_t)info.f_bavail * info.f_frsize / 2 > size_bytes;
}

static int write_all(int fd, const char *from, size_t size_bytes)
{
    while (size_bytes) {
        ssize_t n = write(fd, from, size_bytes < ((size_t)1 << 30) ? size_bytes : (size_t)1 << 30);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 0;
        from += n;
        size_bytes -= (size_t)n;
    }
    return 1;
}

int dlc_file_keep(void *bytes, size_t size_bytes)
{
    const char *folder = getenv("TMPDIR");
    int fd = open(folder && *folder ? folder : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        return 0;
    int done = has_room(fd, size_bytes) && write_all(fd, bytes, size_bytes) &&
               mmap(bytes, size_bytes, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
    close(fd);
    return done;
}
