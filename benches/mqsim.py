"""Runs MQSim (https://github.com/CMU-SAFARI/MQSim, built elsewhere) with the work of the flash card's bench.

The card has 1 GB of 4 KB pages on 16 dies, a third more flash than that, blocks of 64 pages, and MQSim's ideal mapping
table. Its 32 requests in flight write random pages. MQSim begins with an empty card, the bench's card as after a long
time of writes; so MQSim copies fewer pages for each write.
"""

from __future__ import annotations

import re
import resource
import subprocess
import tempfile
from pathlib import Path
from typing import Any

HOST = {
    "PCIe_Lane_Bandwidth": 1.0,
    "PCIe_Lane_Count": 4,
    "SATA_Processing_Delay": 400_000,
    "Enable_ResponseTime_Logging": "false",
    "ResponseTime_Logging_Period_Length": 1_000_000,
}
DEVICE = {
    "Seed": 1,
    "Enabled_Preconditioning": "false",
    "Memory_Type": "FLASH",
    "HostInterface_Type": "NVME",
    "IO_Queue_Depth": 1_024,
    "Queue_Fetch_Size": 512,
    "Caching_Mechanism": "SIMPLE",
    "Data_Cache_Sharing_Mode": "SHARED",
    "Data_Cache_Capacity": 4 << 20,
    "Data_Cache_DRAM_Row_Size": 8_192,
    "Data_Cache_DRAM_Data_Rate": 100,
    "Data_Cache_DRAM_Data_Busrt_Size": 1,
    "Data_Cache_DRAM_tRCD": 13,
    "Data_Cache_DRAM_tCL": 13,
    "Data_Cache_DRAM_tRP": 13,
    "Address_Mapping": "PAGE_LEVEL",
    "Ideal_Mapping_Table": "true",
    "CMT_Capacity": 2 << 20,
    "CMT_Sharing_Mode": "SHARED",
    "Plane_Allocation_Scheme": "CWDP",
    "Transaction_Scheduling_Policy": "OUT_OF_ORDER",
    "Overprovisioning_Ratio": 0.25,
    "GC_Exec_Threshold": 0.05,
    "GC_Block_Selection_Policy": "GREEDY",
    "Use_Copyback_for_GC": "false",
    "Preemptible_GC_Enabled": "false",
    "GC_Hard_Threshold": 0.005,
    "Dynamic_Wearleveling_Enabled": "false",
    "Static_Wearleveling_Enabled": "false",
    "Static_Wearleveling_Threshold": 100,
    "Preferred_suspend_erase_time_for_read": 700_000,
    "Preferred_suspend_erase_time_for_write": 700_000,
    "Preferred_suspend_write_time_for_read": 100_000,
    "Flash_Channel_Count": 4,
    "Flash_Channel_Width": 1,
    "Channel_Transfer_Rate": 333,
    "Chip_No_Per_Channel": 4,
    "Flash_Comm_Protocol": "NVDDR2",
}
FLASH = {
    "Flash_Technology": "SLC",
    "CMD_Suspension_Support": "NONE",
    **{f"Page_Read_Latency_{bit}": 25_000 for bit in ("LSB", "CSB", "MSB")},
    **{f"Page_Program_Latency_{bit}": 250_000 for bit in ("LSB", "CSB", "MSB")},
    "Block_Erase_Latency": 2_000_000,
    "Block_PE_Cycles_Limit": 1_000_000,
    "Suspend_Erase_Time": 700_000,
    "Suspend_Program_Time": 100_000,
    "Die_No_Per_Chip": 1,
    "Plane_No_Per_Die": 1,
    "Block_No_Per_Plane": 341,
    "Page_No_Per_Block": 64,
    "Page_Capacity": 4_096,
    "Page_Metadat_Capacity": 448,
}
LOAD = {
    "Priority_Class": "HIGH",
    "Device_Level_Data_Caching_Mode": "TURNED_OFF",
    "Channel_IDs": "0,1,2,3",
    "Chip_IDs": "0,1,2,3",
    "Die_IDs": "0",
    "Plane_IDs": "0",
    "Initial_Occupancy_Percentage": 0,
    "Working_Set_Percentage": 100,
    "Synthetic_Generator_Type": "QUEUE_DEPTH",
    "Read_Percentage": 0,
    "Address_Distribution": "RANDOM_UNIFORM",
    "Percentage_of_Hot_Region": 0,
    "Generated_Aligned_Addresses": "true",
    "Address_Alignment_Unit": 8,
    "Request_Size_Distribution": "FIXED",
    "Average_Request_Size": 8,
    "Variance_Request_Size": 0,
    "Seed": 1,
    "Average_No_of_Reqs_in_Queue": 32,
    "Intensity": 32_768,
    "Stop_Time": 0,
}


def mqsim(program: Path, writes: int) -> dict[str, float]:
    """Return the writes per CPU-second of MQSim, and the pages that it programs for each write."""
    device = {**DEVICE, "Flash_Parameter_Set": FLASH}
    settings = {"Execution_Parameter_Set": {"Host_Parameter_Set": HOST, "Device_Parameter_Set": device}}
    flow = {"IO_Flow_Parameter_Set_Synthetic": {**LOAD, "Total_Requests_To_Generate": writes}}
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("device.xml", "load.xml")]
        for file, content in zip(files, (settings, {"MQSim_IO_Scenarios": {"IO_Scenario": flow}}), strict=True):
            file.write_text(f'<?xml version="1.0" encoding="us-ascii"?>\n{_xml(content)}\n')
        command = [program.resolve(), "-i", files[0], "-w", files[1]]
        before_s = _cpu_s()
        subprocess.run(command, cwd=folder, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        cpu_s = _cpu_s() - before_s
        result = Path(folder, "load_scenario_1.xml").read_text()
    done = int(re.findall(r"<Write_Request_Count>(\d+)<", result)[0])
    if done != writes:
        raise SystemExit(f"MQSim wrote {done:,} pages instead of {writes:,}: its figure would be of other work")
    programmed = int(re.findall(r'Issued_Flash_Program_CMD="(\d+)"', result)[0])
    return {"mqsim_writes_per_s": round(writes / cpu_s), "mqsim_write_amplification": round(programmed / writes, 4)}


def _cpu_s() -> float:
    """Return the CPU time of this process's children so far [s]."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _xml(content: Any) -> str:
    if not isinstance(content, dict):
        return str(content)
    return "\n".join(f"<{name}>{_xml(inside)}</{name}>" for name, inside in content.items())
