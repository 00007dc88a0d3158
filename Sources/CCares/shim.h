#pragma once
#include <sys/uio.h>
/* Newer versions deprecate functions for which the version of Debian 12 has no other. */
#define CARES_NO_DEPRECATED
#include <ares.h>

/* The codes are macros in older versions and an enumeration in newer ones; Swift imports these as numbers with both. */
static const int CARES_SUCCESS = ARES_SUCCESS;
static const int CARES_CANCELLED = ARES_ECANCELLED;
