/** Names of nodes. */
import { randomBytes } from "node:crypto"
import { hostname } from "node:os"

/** A name for a node that was given none: its host's, and six random hex digits. */
export const nodeName = (): string =>
  `${hostname().replaceAll(/[^A-Za-z0-9._-]/g, "-").slice(0, 57)}-${randomBytes(3).toString("hex")}`
