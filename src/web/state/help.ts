/**
 * Addresses of the pages that the running gateway serves at `/help`, which the console links to.
 */
import type { Page } from "./route.ts"

/** The address of a page of the documents, by its name without a suffix; `row` is a code or a setting in one of its tables. */
export const helpAddress = (page: string, row?: string): string =>
  `../help/${page}${row === undefined ? "" : `#${row}`}`

/** Where pages of what runs are described; the others are of what is configured. */
const running: Readonly<Partial<Record<Page, string>>> = {
  overview: "",
  requests: "",
  playground: "",
  usage: "-usage",
  sessions: "-usage",
  samples: "",
  about: ""
}

/** The address of the section about a page of the console. */
export const pageHelp = (page: Page): string =>
  helpAddress(
    `operate/console${running[page] ?? "-entries"}`,
    page === "transfer" ? "import-and-export" : page
  )

/** The address of what the documents say about a setting. */
export const settingHelp = (path: string): string => helpAddress("reference/configuration", path)
