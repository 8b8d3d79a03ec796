/* SPDX-License-Identifier: GPL-3.0-or-later
 * The filter that bulkmark is measured against: C libmilter, every event accepted, one header added.
 * cc -O2 -o null_milter null_milter.c -lmilter -lpthread */
#include <libmilter/mfapi.h>
#include <stdio.h>

static sfsistat on_connect(SMFICTX *ctx, char *host, _SOCK_ADDR *addr) { (void)ctx; (void)host; (void)addr; return SMFIS_CONTINUE; }
static sfsistat on_helo(SMFICTX *ctx, char *name) { (void)ctx; (void)name; return SMFIS_CONTINUE; }
static sfsistat on_envelope(SMFICTX *ctx, char **args) { (void)ctx; (void)args; return SMFIS_CONTINUE; }
static sfsistat on_data(SMFICTX *ctx) { (void)ctx; return SMFIS_CONTINUE; }
static sfsistat on_header(SMFICTX *ctx, char *name, char *value) { (void)ctx; (void)name; (void)value; return SMFIS_CONTINUE; }
static sfsistat on_end_of_header(SMFICTX *ctx) { (void)ctx; return SMFIS_CONTINUE; }
static sfsistat on_body(SMFICTX *ctx, unsigned char *chunk, size_t size) { (void)ctx; (void)chunk; (void)size; return SMFIS_CONTINUE; }

static sfsistat on_end_of_message(SMFICTX *ctx)
{
    smfi_addheader(ctx, "X-Null", "clean; body=1; threshold=20; host=mx.test");
    return SMFIS_CONTINUE;
}

int main(int argc, char **argv)
{
    struct smfiDesc filter = {
        .xxfi_name = "null",
        .xxfi_version = SMFI_VERSION,
        .xxfi_flags = SMFIF_ADDHDRS,
        .xxfi_connect = on_connect,
        .xxfi_helo = on_helo,
        .xxfi_envfrom = on_envelope,
        .xxfi_envrcpt = on_envelope,
        .xxfi_data = on_data,
        .xxfi_header = on_header,
        .xxfi_eoh = on_end_of_header,
        .xxfi_body = on_body,
        .xxfi_eom = on_end_of_message,
    };
    if (argc != 2 || smfi_register(filter) != MI_SUCCESS || smfi_setconn(argv[1]) != MI_SUCCESS) {
        fprintf(stderr, "usage: null_milter SOCKET\n");
        return 64;
    }
    return smfi_main();
}
