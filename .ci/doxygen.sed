# The header's comments are plain C comments, laid out by hand. For doxygen, and for it alone:
# the first one is the file's; a block that begins at the left edge documents what follows, as it stands;
# so does a one-line comment there, but for the marks of sections; one at the end of a declaration documents that;
# and the double version of a function shares the text of the float version.
1s|^/\*$|/** @file\n@verbatim|
s|^ \*/$|@endverbatim */|
/^\/\* [^=]/{
    s|^/\* \(.*\)\*/$|/** \1*/|
    t
    s|^/\* |/**\n@verbatim\n * |
    :more
    N
    s| \*/$|\n@endverbatim */|
    T more
}
s|\([;,]\)\( *\)/\* |\1\2/**< |
s|^[a-zA-Z].*_f64 *(|/** The same in double. */\n&|
