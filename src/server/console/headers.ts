import { framingHeaders } from "../framing.ts"

/**
 * What every reply below `/console/` says, whoever gives it: the page runs its own files, talks to its own origin and is
 * shown in no other page.
 */
export const consoleHeaders = {
  ...framingHeaders,
  "content-security-policy":
    "default-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer"
}

/** Whether a path of the gateway's own is one of the console's. */
export const isConsolePath = (path: string): boolean => path === "/console" || path.startsWith("/console/")
