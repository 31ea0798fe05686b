/** What a build has for `/help`. It imports nothing, because builds read it too. */

/** A page. `name` is its path below /help; `headings` are the addresses and texts of its headings below the title. */
export interface HelpFile {
  readonly name: string
  readonly title: string
  readonly headings: ReadonlyArray<readonly [anchor: string, text: string]>
  readonly html: string
  readonly markdown: string
}

/** All pages as a build has them. `search` is the page of results, with a comment where they go. */
export interface HelpFiles {
  readonly pages: ReadonlyArray<HelpFile>
  readonly style: string
  readonly search: string
}

/** The asset with all pages, as compressed JSON. */
export const helpAsset = "help.json.br"
