import { framingHeaders } from "../replyHeaders.ts"

/**
 * The headers of every response below `/console/`, errors included: the page loads its own files only, calls its own origin
 * only, and cannot be framed.
 */
export const consoleHeaders = {
  ...framingHeaders,
  "content-security-policy":
    "default-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer"
}

/** Whether a path of the gateway belongs to the console. */
export const isConsolePath = (path: string): boolean => path === "/console" || path.startsWith("/console/")
