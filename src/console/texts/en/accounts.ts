/**
 * English texts of the pages about keys and accounts.
 */
import type { Count } from "./count.ts"

/** Why a line of a batch was refused, in words; the gateway's own word where there are none. */
const lineDetails: Readonly<Record<string, string>> = {
  duplicate: "Already there",
  "unknown account": "No such account",
  "not understood": "Not understood",
  password: "Password or token is missing",
  mobile: "Not a mobile number",
  note: "The note is too long",
  email: "Email, mobile or token is missing"
}

const batchWords = { enable: "enabled", disable: "disabled", delete: "deleted" } as const

export const accountTexts = (count: Count) => ({
  accounts: {
    search: "Search accounts",
    show: "Show",
    all: "All",
    account: "Account",
    state: "State",
    inUse: "In use",
    actions: "Actions",
    selectColumn: "Select",
    selectPage: "Select this page",
    select: (id: string) => `Select ${id}`,
    disable: "Disable",
    disableOf: (id: string) => `Disable ${id}`,
    enable: "Enable",
    enableOf: (id: string) => `Enable ${id}`,
    test: "Test",
    testOf: (id: string) => `Test ${id}`,
    note: "Note",
    noteOf: (id: string) => `Note of ${id}`,
    noteSaved: (id: string) => `The note of ${id} was saved.`,
    clear: "Clear sessions",
    clearOf: (id: string) => `Clear sessions of ${id}`,
    cleared: (id: string) => `The sessions of ${id} were cleared.`,
    delete: "Delete",
    deleteOf: (id: string) => `Delete ${id}`,
    deleteAsk: "Requests that run on it finish; no further one does. This cannot be undone.",
    disabled: (id: string) => `${id} is disabled: it gets no further requests.`,
    enabled: (id: string) => `${id} is enabled.`,
    disableSelected: "Disable selected",
    enableSelected: "Enable selected",
    testSelected: "Test selected",
    deleteSelected: "Delete selected",
    testAll: "Test all",
    stopTests: "Stop tests",
    tests: "Tests",
    selected: (n: number) => `${n} selected`,
    clearSelection: "Clear selection",
    count: (n: number) => count(n, "account", "accounts"),
    total: (n: number) => count(n, "account", "accounts"),
    empty: "There are no accounts yet. Add some to let the gateway answer through them.",
    noneFound: "No account fits.",
    batchDone: (action: keyof typeof batchWords, changed: number, failed: number) =>
      `${count(changed, "account", "accounts")} ${batchWords[action]}.${failed > 0 ? ` ${failed} refused.` : ""}`,
    testsSoFar: (done: number, total: number, failed: number) =>
      `${done} of ${total} tested${failed > 0 ? `, ${failed} failed` : ""}`,
    testsDone: (passed: number, failed: number) =>
      `${count(passed + failed, "account", "accounts")} tested: ${passed} passed, ${failed} failed.`,
    testsStopped: (passed: number, failed: number, total: number) =>
      `Stopped. ${passed + failed} of ${total} tested: ${passed} passed, ${failed} failed.`,
    testPassed: (id: string, ms: number, message: string) => `${id} passed in ${ms} ms: ${message}`,
    testFailed: (id: string, message: string) => `${id} failed: ${message}`
  },
  addAccounts: {
    title: "Add accounts",
    field: "Accounts, one a line",
    hint:
      "An email or mobile and its password, apart by blanks, a tab, ----, a comma, ;, | or a colon; or a token; or JSON. Lines with # in front are left out.",
    preview: "Preview",
    results: "Results",
    line: "Line",
    account: "Account",
    result: "Result",
    noLines: "There is no account in the text.",
    willAdd: "Will be added",
    added: "Added",
    details: (detail: string) => lineDetails[detail] ?? detail,
    moreLines: (n: number) => `${count(n, "further line", "further lines")} not shown.`,
    add: (n: number) => `Add ${count(n, "account", "accounts")}`,
    done: (n: number) => `${count(n, "account", "accounts")} added.`
  },
  keys: {
    newKey: "New key",
    generate: "Generate",
    add: "Add key",
    added: (preview: string) => `${preview} was added.`,
    key: "Key",
    name: "Name",
    actions: "Actions",
    show: "Show",
    hide: "Hide",
    showOf: (preview: string) => `Show ${preview}`,
    hideOf: (preview: string) => `Hide ${preview}`,
    copy: "Copy",
    copyOf: (preview: string) => `Copy ${preview}`,
    copied: (preview: string) => `${preview} was copied.`,
    edit: "Edit",
    editOf: (preview: string) => `Edit ${preview}`,
    delete: "Delete",
    deleteOf: (preview: string) => `Delete ${preview}`,
    deleted: (preview: string) => `${preview} was deleted.`,
    deleteAsk: "Callers with this key are refused from now on. This cannot be undone.",
    empty: "There are no keys: the gateway serves nobody from its pool.",
    hint: "Callers bring a key as their API key. It is shown to operators only."
  }
})
