/**
 * The console's texts in English. Other languages have the type of this record: what is missing does not compile.
 */
import { accountTexts } from "./en/accounts.ts"
import { configurationTexts } from "./en/configuration.ts"
import { trafficTexts } from "./en/traffic.ts"

const count = (n: number, one: string, many: string): string => `${n} ${n === 1 ? one : many}`

const common = {
  product: "Model Gateway",
  skip: "Skip to content",
  main: "Main",
  menu: "Menu",
  language: "Language",
  theme: "Theme",
  themes: { system: "System", light: "Light", dark: "Dark" },
  signOut: "Sign out",
  connection: "Connection",
  connections: { connecting: "Connecting", live: "Live", reconnecting: "Reconnecting" },
  result: "Result",
  dismiss: "Dismiss",
  pages: {
    overview: "Overview",
    requests: "Requests",
    playground: "Playground",
    keys: "Keys",
    accounts: "Accounts",
    settings: "Settings",
    usage: "Usage",
    samples: "Samples",
    transfer: "Import and export",
    about: "About"
  },
  loading: "Loading…",
  again: "Try again",
  cancel: "Cancel",
  close: "Close",
  save: "Save",
  delete: "Delete",
  copy: "Copy",
  copied: "Copied",
  cannotCopy: "The browser does not let the page copy. Select the text and copy it.",
  none: "none",
  yes: "yes",
  no: "no",
  of: (part: string, whole: string) => `${part} of ${whole}`,
  deleteOf: (name: string) => `Delete ${name}`,
  deleteAsk: "This cannot be undone.",
  notLasting:
    "Changes are lost when the process ends: the configuration comes from the environment and is not written back.",
  needsSync: "Sync to the hosting platform to keep the change.",
  page: (page: number, pages: number) => `Page ${page} of ${pages}`,
  previous: "Previous page",
  next: "Next page",
  shown: (from: number, to: number, of: number) => `${from}–${to} of ${of}`,
  seconds: (text: string) => `${text} s`,
  milliseconds: (text: string) => `${text} ms`
}

const failures = {
  unreachable: "The gateway could not be reached.",
  status: (status: number) => `The gateway answered with status ${status}.`,
  unknown: "Something went wrong."
}

const signIn = {
  title: "Sign in",
  key: "Admin key or password",
  submit: "Sign in",
  hint: "The gateway prints a generated admin key when it starts.",
  ended: "The session has ended. Sign in again.",
  inMemory: "This page is not loaded over https or from this machine, so the sign-in ends with the page."
}

export const en = {
  common,
  failures,
  signIn,
  ...trafficTexts(count),
  ...accountTexts(count),
  ...configurationTexts(count)
}

/** The texts of a language. */
export type Texts = typeof en
