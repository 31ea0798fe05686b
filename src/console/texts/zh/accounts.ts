/**
 * Chinese texts of the pages about keys and accounts.
 */
import type { Texts } from "../en.ts"

const lineDetails: Readonly<Record<string, string>> = {
  duplicate: "已存在",
  "unknown account": "没有这个账号",
  "not understood": "无法识别",
  password: "缺少密码或令牌",
  mobile: "不是手机号",
  note: "备注过长",
  email: "缺少邮箱、手机号或令牌"
}

const batchWords = { enable: "启用", disable: "停用", delete: "删除" } as const

export const accountTexts: Pick<Texts, "accounts" | "addAccounts" | "keys"> = {
  accounts: {
    search: "搜索账号",
    show: "显示",
    all: "全部",
    account: "账号",
    state: "状态",
    inUse: "使用中",
    actions: "操作",
    selectColumn: "选择",
    selectPage: "选择本页",
    select: (id) => `选择 ${id}`,
    disable: "停用",
    disableOf: (id) => `停用 ${id}`,
    enable: "启用",
    enableOf: (id) => `启用 ${id}`,
    test: "测试",
    testOf: (id) => `测试 ${id}`,
    note: "备注",
    noteOf: (id) => `备注 ${id}`,
    noteSaved: (id) => `${id} 的备注已保存。`,
    clear: "清除会话",
    clearOf: (id) => `清除会话 ${id}`,
    cleared: (id) => `${id} 的会话已清除。`,
    delete: "删除",
    deleteOf: (id) => `删除 ${id}`,
    deleteAsk: "正在进行的请求会完成，不会再有新的请求。此操作无法撤销。",
    disabled: (id) => `${id} 已停用：不会再收到请求。`,
    enabled: (id) => `${id} 已启用。`,
    disableSelected: "停用所选",
    enableSelected: "启用所选",
    testSelected: "测试所选",
    deleteSelected: "删除所选",
    testAll: "全部测试",
    stopTests: "停止测试",
    tests: "测试",
    selected: (n) => `已选 ${n} 个`,
    clearSelection: "清除选择",
    count: (n) => `${n} 个账号`,
    total: (n) => `共 ${n} 个账号`,
    empty: "还没有账号。添加账号后，网关才能通过它们作答。",
    noneFound: "没有符合条件的账号。",
    batchDone: (action, changed, failed) =>
      `已${batchWords[action]} ${changed} 个账号。${failed > 0 ? `${failed} 个被拒绝。` : ""}`,
    testsSoFar: (done, total, failed) => `已测试 ${done} / ${total}${failed > 0 ? `，失败 ${failed}` : ""}`,
    testsDone: (passed, failed) => `已测试 ${passed + failed} 个账号：通过 ${passed}，失败 ${failed}。`,
    testsStopped: (passed, failed, total) =>
      `已停止。已测试 ${passed + failed} / ${total}：通过 ${passed}，失败 ${failed}。`,
    testPassed: (id, ms, message) => `${id} 通过，用时 ${ms} 毫秒：${message}`,
    testFailed: (id, message) => `${id} 失败：${message}`
  },
  addAccounts: {
    title: "添加账号",
    field: "账号，每行一个",
    hint: "邮箱或手机号及其密码，以空格、制表符、----、逗号、;、| 或冒号分隔；或令牌；或 JSON。以 # 开头的行会被忽略。",
    preview: "预览",
    results: "结果",
    line: "行",
    account: "账号",
    result: "结果",
    noLines: "文本中没有账号。",
    willAdd: "将添加",
    added: "已添加",
    details: (detail) => lineDetails[detail] ?? detail,
    moreLines: (n) => `另有 ${n} 行未显示。`,
    add: (n) => `添加 ${n} 个账号`,
    done: (n) => `已添加 ${n} 个账号。`
  },
  keys: {
    newKey: "新密钥",
    generate: "生成",
    add: "添加密钥",
    added: (preview) => `${preview} 已添加。`,
    key: "密钥",
    name: "名称",
    actions: "操作",
    show: "显示",
    hide: "隐藏",
    showOf: (preview) => `显示 ${preview}`,
    hideOf: (preview) => `隐藏 ${preview}`,
    copy: "复制",
    copyOf: (preview) => `复制 ${preview}`,
    copied: (preview) => `${preview} 已复制。`,
    edit: "编辑",
    editOf: (preview) => `编辑 ${preview}`,
    delete: "删除",
    deleteOf: (preview) => `删除 ${preview}`,
    deleted: (preview) => `${preview} 已删除。`,
    deleteAsk: "使用此密钥的调用方从现在起会被拒绝。此操作无法撤销。",
    empty: "没有密钥：网关不会用账号池为任何人服务。",
    hint: "调用方以它作为 API 密钥。只有管理员能看到。"
  }
}
