//! Messages for the user, in the user's language.
//!
//! Invariant: users who write Chinese get Chinese, all others English.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Texts {
    English,
    Chinese,
}

impl Texts {
    pub(crate) fn for_text(text: &str) -> Self {
        let is_han = |c: char| ('\u{3400}'..='\u{9fff}').contains(&c);
        match text.chars().any(is_han) {
            true => Self::Chinese,
            false => Self::English,
        }
    }

    fn pick<'t>(self, english: &'t str, chinese: &'t str) -> &'t str {
        match self {
            Self::English => english,
            Self::Chinese => chinese,
        }
    }

    pub(crate) fn config_invalid(self) -> &'static str {
        self.pick("the config of this agent is not valid", "该智能体的 config 无效")
    }

    pub(crate) fn new_session(self, title: &str) -> String {
        match self {
            Self::English => format!(
                "{title} could not load the earlier session. It continues in a new one with a summary of this \
                 conversation; its workspace is unchanged."
            ),
            Self::Chinese => format!(
                "{title} 无法加载之前的会话，已新建会话并附上本次对话的摘要继续；工作区内容不变。"
            ),
        }
    }

    pub(crate) fn new_workspace(self, title: &str) -> String {
        match self {
            Self::English => format!(
                "The workspace of this conversation was removed. {title} continues in an empty one with a summary of \
                 this conversation."
            ),
            Self::Chinese => {
                format!("本次对话的工作区已被删除。{title} 将在新的空工作区中附上对话摘要继续。")
            }
        }
    }

    pub(crate) fn cannot_start(self, title: &str, why: &str) -> String {
        match self {
            Self::English => format!("{title} does not start: {why}"),
            Self::Chinese => format!("{title} 无法启动：{why}"),
        }
    }

    pub(crate) fn exited(self, title: &str, how: &str) -> String {
        match self {
            Self::English => format!(
                "{title} stopped during the run ({how}). The next message loads the session again."
            ),
            Self::Chinese => {
                format!("{title} 在运行期间退出（{how}）。下一条消息会重新加载会话。")
            }
        }
    }

    pub(crate) fn over_memory(self, title: &str, limit_mb: u64) -> String {
        match self {
            Self::English => format!(
                "{title} used more than {limit_mb} MiB and was stopped. The next message loads the session again."
            ),
            Self::Chinese => format!(
                "{title} 使用的内存超过 {limit_mb} MiB，已被停止。下一条消息会重新加载会话。"
            ),
        }
    }

    pub(crate) fn refused(self) -> &'static str {
        self.pick("the model refused to answer", "模型拒绝回答")
    }

    pub(crate) fn too_many_requests(self) -> &'static str {
        self.pick(
            "the harness reached its limit of model requests for one turn",
            "外部智能体已达到单轮模型请求次数上限",
        )
    }

    pub(crate) fn no_gateway(self) -> &'static str {
        self.pick(
            "this host offers no model gateway to this run: grant it a model, or use `keys = \"own\"`",
            "宿主未向本次运行提供模型网关：请授予模型，或设置 `keys = \"own\"`",
        )
    }
}
