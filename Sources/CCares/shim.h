#pragma once
#include <sys/uio.h>
#include <ares.h>
