// The parser of modules and kernels.
#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <unordered_map>
#include <utility>

#include "ptx/decode.hpp"
#include "ptx/names.hpp"
#include "ptx/program.hpp"
#include "ptx/text.hpp"

namespace th_ptx {
namespace {

[[noreturn]] void fail(std::uint32_t line, std::string const& what) {
    throw PtxError("PTX line " + std::to_string(line) + ": " + what);
}

class KernelParser {
public:
    KernelParser(std::string name, ModuleShared const& module_shared)
        : names_(kernel_, module_shared) {
        kernel_.name = std::move(name);
        kernel_.specials.fill(kNoRegister);
    }

    void read_parameters(std::string_view list) {
        for (std::string const& one : split(list, ',')) {
            names_.declare_variable(one, kernel_.param_bytes);
        }
    }

    /// From behind the opening brace to behind the closing one.
    Kernel read_body(Cursor& cursor) {
        for (int depth = 1; depth > 0;) {
            cursor.skip_space();
            if (cursor.at_end()) fail(cursor.line(), kernel_.name + " does not end");
            if (cursor.peek() == '{' || cursor.peek() == '}') {
                depth += cursor.peek() == '{' ? 1 : -1;
                cursor.peek() == '{' ? names_.open_scope() : names_.close_scope();
                cursor.take(1);
            } else if (std::string_view const label = cursor.take_label(); !label.empty()) {
                last_label_ = std::string(label);
                labels_[last_label_] = static_cast<std::uint32_t>(kernel_.code.size());
            } else {
                std::uint32_t const line = cursor.line();
                read_statement(trimmed(cursor.take_until(";")), line);
            }
        }
        resolve_branches();
        require_an_end();
        return std::move(kernel_);
    }

private:
    struct Pending {
        std::size_t at;
        std::string label;
    };

    void read_statement(std::string_view statement, std::uint32_t line) {
        if (statement.empty()) return;
        if (statement[0] == '.') {
            try {
                read_directive(statement);
            } catch (std::exception const& error) {
                fail(line, error.what());
            }
            return;
        }
        Decoded decoded = decode(statement, line, names_);
        if (!decoded.label.empty()) branches_.push_back({kernel_.code.size(), decoded.label});
        kernel_.code.push_back(std::move(decoded.instruction));
    }

    void read_directive(std::string_view directive) {
        std::string const word = words_of(directive).front();
        if (word == ".reg") {
            names_.declare_registers(directive);
        } else if (word == ".local") {
            names_.declare_variable(directive, kernel_.local_bytes);
        } else if (word == ".shared") {
            names_.declare_variable(directive, kernel_.shared_bytes);
        } else if (word == ".branchtargets") {
            tables_[last_label_] = split(directive.substr(word.size()), ',');
        } else if (word != ".pragma") {
            throw PtxError("unknown directive " + word);
        }
    }

    std::uint32_t target(Instruction const& in, std::string const& label) const {
        auto const found = labels_.find(label);
        if (found == labels_.end()) fail(in.line, "no label " + label);
        return found->second;
    }

    void resolve_branches() {
        for (Pending const& branch : branches_) {
            Instruction& in = kernel_.code[branch.at];
            if (in.op == Op::Branch) {
                in.target = target(in, branch.label);
                continue;
            }
            auto const table = tables_.find(branch.label);
            if (table == tables_.end()) fail(in.line, "no branch table " + branch.label);
            for (std::string const& label : table->second) in.parts.push_back(target(in, label));
        }
    }

    /// The interpreter need not check for a program counter beyond the code.
    void require_an_end() {
        if (kernel_.code.empty()) fail(0, kernel_.name + " has no instructions");
        Instruction const& last = kernel_.code.back();
        bool const goes_on = last.op != Op::Return && last.op != Op::Branch && last.op != Op::Trap;
        if (goes_on || last.predicate != kNoRegister) {
            fail(last.line, kernel_.name + " can run past its last instruction");
        }
        for (auto const& [label, at] : labels_) {
            if (at == kernel_.code.size() && !tables_.contains(label)) {
                fail(last.line, "label " + label + " has no instruction");
            }
        }
    }

    Kernel kernel_;
    Names names_;
    std::string last_label_;
    std::unordered_map<std::string, std::uint32_t> labels_;
    std::unordered_map<std::string, std::vector<std::string>> tables_;
    std::vector<Pending> branches_;
};

/// "tensorhash::device::FindRows<...>" for the mangled name of run<FindRows<...>>.
std::string body_of(std::string const& mangled) {
    int status = 0;
    std::unique_ptr<char, decltype(&std::free)> const plain(
        abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), std::free);
    std::string const name = status == 0 ? plain.get() : mangled;
    std::size_t const begin = name.find("run<");
    std::size_t const end = name.rfind(">(");
    if (begin == std::string::npos || end == std::string::npos) return name;
    return std::string(trimmed(std::string_view(name).substr(begin + 4, end - begin - 4)));
}

/// After ".entry": name, parameters, tuning directives, body.
void read_kernel(Cursor& cursor, ModuleShared const& module_shared, Program& program) {
    std::uint32_t const line = cursor.line();
    std::string const name(trimmed(cursor.take_until("(")));
    KernelParser parser(body_of(name), module_shared);
    parser.read_parameters(cursor.take_until(")"));
    cursor.take_until("{");  // .maxntid and the like do not change the result
    auto const [at, is_new] = program.try_emplace(body_of(name), parser.read_body(cursor));
    if (!is_new) fail(line, "a second kernel " + at->first);
}

}  // namespace

Program parse(std::string_view raw) {
    std::string const text = without_comments(raw);
    Cursor cursor(text);
    Program program;
    ModuleShared module_shared;
    for (cursor.skip_space(); !cursor.at_end(); cursor.skip_space()) {
        std::uint32_t const line = cursor.line();
        std::string const word(trimmed(cursor.take_until(" \t\n")));
        if (word == ".version" || word == ".target" || word == ".address_size") {
            cursor.take_until("\n");
        } else if (word == ".entry") {
            read_kernel(cursor, module_shared, program);
        } else if (word == ".shared") {
            std::string const declaration(cursor.take_until(";"));
            module_shared[declared_name(declaration)] = declaration;
        } else if (word != ".visible" && word != ".weak") {
            fail(line, "expected a kernel, got " + word +
                           ": functions and variables of a module are not supported");
        }
    }
    return program;
}

}  // namespace th_ptx
